"""Features, heuristics, set scorer, calibration and scorer files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_lab.model_score.plugin import calibrated
from podium_lab.models.features import Features, feature_arrays
from podium_lab.models.heuristics import HEURISTICS, OBJECTIVES, GpuArrays
from podium_lab.models.schema import GLOBAL, LIMIT, NODE, POD, SCHEMA_HASH, F, G, P
from podium_lab.models.scorer_file import OnnxScorer, ScorerFileError, ScorerOrigin, onnx_of
from podium_lab.models.set_scorer import NOT_FEASIBLE, forward, initial_weights
from tests.podium_lab.models.arrays import permuted, random_cluster, random_pod

seeds = st.integers(0, 2**32 - 1)


def features_of(seed: int, width: int) -> Features:
    rng = np.random.default_rng(seed)
    return feature_arrays(np, random_cluster(rng, width), random_pod(rng))


def test_the_schema_changes_only_on_purpose() -> None:
    assert (F, P, G) == (len(NODE), len(POD), len(GLOBAL)) == (29, 15, 4)
    assert len({*NODE}) == F
    assert SCHEMA_HASH.startswith(KNOWN_HASH)


KNOWN_HASH = "115bb4a0fde3"
"""Changes with the schema, and then VERSION must, too."""


@given(seeds, st.integers(1, 70))
def test_features_are_finite_bounded_and_single_precision(seed: int, width: int) -> None:
    found = features_of(seed, width)
    assert found.nodes.shape == (width, F)
    assert found.pod.shape == (P,)
    assert found.globals.shape == (G,)
    for each in found[:3]:
        assert each.dtype == np.float32
        assert np.isfinite(each).all()
        assert (np.abs(each) <= LIMIT).all()


@given(seeds, st.integers(2, 40))
def test_the_order_of_nodes_and_nodes_that_do_not_fit_change_no_other_features(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    cluster, pod = random_cluster(rng, width), random_pod(rng)
    order = rng.permutation(width)
    found = feature_arrays(np, cluster, pod)
    moved = feature_arrays(np, permuted(cluster, order), pod)
    np.testing.assert_array_equal(moved.nodes, found.nodes[order])
    np.testing.assert_allclose(moved.globals, found.globals, rtol=1e-6)
    fitting = np.flatnonzero(cluster.mask)
    alone = feature_arrays(np, permuted(cluster, fitting), pod)
    np.testing.assert_array_equal(alone.nodes, found.nodes[fitting])
    np.testing.assert_array_equal(alone.pod, found.pod)


def test_a_metric_that_is_not_known_is_0_with_a_bit_that_says_so() -> None:
    rng = np.random.default_rng(1)
    cluster = random_cluster(rng, 5, missing=0.0)._replace(connections=np.array([3.0, np.nan, 0.0, 7.0, 1.0]))
    found = feature_arrays(np, cluster, random_pod(rng)).nodes
    at, known = NODE.index("connections"), NODE.index("connections-known")
    assert found[1, at] == 0
    assert found[:, known].tolist() == [1, 0, 1, 1, 1]
    assert found[2, at] == 0


@given(seeds, st.integers(1, 30), st.sampled_from(OBJECTIVES))
def test_heuristics_are_finite_and_equivariant(seed: int, width: int, objective: str) -> None:
    rng = np.random.default_rng(seed)
    cluster, pod = random_cluster(rng, width), random_pod(rng)
    scores = HEURISTICS[objective](np, cluster, pod, None)
    assert np.isfinite(scores).all()
    order = rng.permutation(width)
    again = HEURISTICS[objective](np, permuted(cluster, order), pod, None)
    np.testing.assert_allclose(again, scores[order], rtol=1e-9, atol=1e-9)


@given(seeds)
def test_features_and_heuristics_of_a_batch_are_those_of_its_members(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster, pod = random_cluster(rng, 6, lead=(3,)), random_pod(rng, lead=(3,))
    together = feature_arrays(np, cluster, pod)
    for i in range(3):
        one, its_pod = type(cluster)(*(each[i] for each in cluster)), type(pod)(*(each[i] for each in pod))
        alone = feature_arrays(np, one, its_pod)
        for batched, single in zip(together[:3], alone[:3], strict=True):
            np.testing.assert_array_equal(batched[i], single)
        for heuristic in HEURISTICS.values():
            np.testing.assert_allclose(heuristic(np, cluster, pod, None)[i], heuristic(np, one, its_pod, None))


def test_each_heuristic_takes_the_node_its_name_says() -> None:
    rng = np.random.default_rng(3)
    pod = random_pod(rng)._replace(request=np.array([1000.0, 1e9, 0.0, 1.0]), latency_soft=35.0, latency_hard=100.0)
    cluster = random_cluster(rng, 3, missing=0.0)._replace(
        capacity=np.tile([10_000.0, 64e9, 0.0, 110.0], (3, 1)),
        requested=np.array([[0.0, 0, 0, 0], [5000.0, 1e9, 0, 5], [3000.0, 1e9, 0, 3]]),
        connections=np.array([30.0, 20.0, 10.0]),
        latency=np.array([20.0, 150.0, 50.0]),
        mask=np.ones(3, dtype=bool),
    )
    best = {name: int(np.argmax(HEURISTICS[name](np, cluster, pod, None))) for name in OBJECTIVES}
    assert best["least-allocated"] == 0
    assert best["most-allocated"] == 1
    assert best["least-connections"] == 2
    assert best["latency-aware"] == 2, "0 is empty, and 1 is beyond the hard limit"


def test_fragmentation_keeps_a_free_device_whole_for_pods_that_need_one() -> None:
    rng = np.random.default_rng(4)
    cluster = random_cluster(rng, 2)._replace(
        capacity=np.tile([64_000.0, 64e9, 2000.0, 110.0], (2, 1)),
        requested=np.zeros((2, 4)),
        mask=np.ones(2, dtype=bool),
    )
    gpus = GpuArrays(
        free=np.array([[1000.0, 1000.0], [1000.0, 500.0]]),
        typical_cpu=np.array([1000.0, 1000.0]),
        typical_gpus=np.array([1, 1]),
        typical_milli=np.array([1000.0, 500.0]),
        typical_share=np.array([0.5, 0.5]),
    )
    pod = random_pod(rng)._replace(request=np.array([1000.0, 0.0, 500.0, 1.0]))
    scores = HEURISTICS["fragmentation"](np, cluster, pod, gpus)
    assert scores.tolist() == [-0.25, 0.25]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_calibrated_scores_keep_the_order_and_only_the_best_get_100(raw: list[float]) -> None:
    numbers = np.array(raw)
    scores = calibrated(numbers)
    assert ((scores >= 0) & (scores <= 100)).all()
    if scores.min() == scores.max():
        assert set(scores.tolist()) == {50}
        return
    assert ((scores == 100) == (numbers / 2 == (numbers / 2).max())).all()
    order = np.argsort(numbers, kind="stable")
    assert (np.diff(scores[order]) >= 0).all()


@given(seeds, st.integers(1, 50))
def test_the_set_scorer_is_equivariant_and_blind_to_nodes_that_do_not_fit(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    weights, found = initial_weights(rng, 16), features_of(seed, width)
    scores, value = forward(np, weights, found)
    order = rng.permutation(width)
    moved = Features(found.nodes[order], found.pod, found.globals, found.mask[order])
    np.testing.assert_allclose(forward(np, weights, moved)[0], scores[order], atol=1e-5)
    changed = found._replace(nodes=np.where(found.mask[:, None], found.nodes, LIMIT).astype(np.float32))
    again, same_value = forward(np, weights, changed)
    np.testing.assert_allclose(again, scores, atol=1e-6)
    np.testing.assert_allclose(same_value, value, atol=1e-6)
    assert (scores[~found.mask] == NOT_FEASIBLE).all()


def write_scorer(path: Path, seed: int = 0, units: int = 16) -> dict[str, np.ndarray]:
    weights = initial_weights(np.random.default_rng(seed), units)
    weights["rho2_w"] = weights["rho2_w"] * 100
    path.write_bytes(onnx_of(weights, ScorerOrigin("least-allocated", seed=str(seed))))
    return weights


@pytest.mark.parametrize("width", [1, 7, 300])
def test_an_onnx_file_scores_as_numpy_does(tmp_path: Path, width: int) -> None:
    pytest.importorskip("onnxruntime")
    weights = write_scorer(tmp_path / "a.onnx")
    found = features_of(width, width)
    scorer = OnnxScorer(tmp_path / "a.onnx")
    expected = forward(np, weights, found)[0]
    scores = scorer.scores(found)
    np.testing.assert_allclose(scores[found.mask], expected[found.mask], atol=1e-4)
    assert np.argmax(scores) == np.argmax(expected)
    assert scorer.warning == ""
    assert scorer.metadata["objective"] == "least-allocated"


def test_without_onnxruntime_numpy_runs_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    weights = write_scorer(tmp_path / "a.onnx")
    monkeypatch.setattr("podium_lab.models.scorer_file._session", lambda _content, _path: None)
    found = features_of(5, 9)
    np.testing.assert_allclose(OnnxScorer(tmp_path / "a.onnx").scores(found), forward(np, weights, found)[0], atol=1e-6)


def test_a_file_for_other_features_is_refused_and_one_that_does_not_say_is_warned_about(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    path = tmp_path / "a.onnx"
    write_scorer(path)
    model = onnx.load(path)
    for pair in model.metadata_props:
        if pair.key == "schema":
            pair.value = "0" * 64
    onnx.save(model, path)
    with pytest.raises(ScorerFileError, match="feature schema 000000000000") as refused:
        OnnxScorer(path)
    assert refused.value.reason == "schema"
    del model.metadata_props[:]
    onnx.save(model, path)
    assert "names no feature schema" in OnnxScorer(path).warning
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ScorerFileError, match="onnxruntime refuses it"):
        OnnxScorer(path)
    with pytest.raises(ScorerFileError, match="cannot be read"):
        OnnxScorer(tmp_path / "missing.onnx")
