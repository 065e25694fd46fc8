"""LearnedScore: one node and many agree, the guard holds, and nothing of the future is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.cluster import NodeInfo, Nodes
from podium.framework import Cycle, PluginError, Resource
from podium_lab.learned import LearnedScore
from podium_lab.learned.plugin import _wanted
from podium_lab.learned.policy_file import TrainedOn, encoded
from podium_lab.learned.row_scores import RowScores
from podium_lab.model_decision_log import sum_up
from podium_plugins.gpu.terms import group_of
from tests.podium.engine.schedulers import World
from tests.podium.plugins.ask import raw_scores
from tests.podium_lab.learned.policies import policy, random_policy, written
from tests.podium_plugins.gpu_share.gpu_worlds import REQUESTS, TYPICAL, gpu_node, gpu_pod
from tools.kit.builders import make_cluster, make_plugin
from tools.kit.effort import examples

MODELS = ["T4", "P100", "V100"]
TYPICAL_WITH_MODELS = [*TYPICAL, {"cpu": 2, "gpuCount": 1, "gpuMilli": 250, "gpuCardModels": ["T4"], "pods": 4}]
FGD = policy({"F": 1.0})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "policy.json", FGD)


def world(file: Path, **args: Any) -> World:
    given = {"LearnedScore": {"policy": str(file), "knowledge": TYPICAL, **args}}
    found = World("GpuShare", "LearnedScore", args=given)
    found.add(gpu_node("n1", 2, cpu=6), gpu_node("n2", 2, cpu=8))
    found.add(gpu_pod("a", 600, devices="1", node="n1"), gpu_pod("b", 1000, devices="0", node="n2"))
    found.add(gpu_pod("c", 400, devices="1", node="n2"))
    return found


def learned(world: World) -> LearnedScore:
    (runtime,) = world.scheduler.profiles.values()
    plugin = runtime.plugins["LearnedScore"]
    assert isinstance(plugin, LearnedScore)
    return plugin


def test_fragmentation_alone_scores_as_by_hand(file: Path) -> None:
    """F rises by 0.3 on n1 and shrinks by 0.32 on n2: 50 − 25·0.3 and 50 + 25·0.32, rounded."""
    nodes = [gpu_node("n1", 2, cpu=6), gpu_node("n2", 2, cpu=8)]
    pods = [
        gpu_pod("a", 600, devices="1", node="n1"),
        gpu_pod("b", 1000, devices="0", node="n2"),
        gpu_pod("c", 400, devices="1", node="n2"),
    ]
    cluster = make_cluster(nodes, pods)
    plugin = make_plugin(LearnedScore, cluster, policy=str(file), knowledge=TYPICAL)
    assert raw_scores(plugin, gpu_pod("arrives", 500, cpu=4), cluster) == {"n1": 43, "n2": 58}


def test_the_device_that_was_scored_is_the_device_that_is_reserved(tmp_path: Path) -> None:
    """Opening a free GPU is preferred here, against the usual choice of the device with the least left."""
    found = world(written(tmp_path / "policy.json", policy({"opened": 2.0})))
    found.attempt(gpu_pod("arrives", 300, cpu=1))
    assert found.bound == [("arrives", "n1")]
    assert found.annotated["arrives"] == {"alibabacloud.com/gpu-index": "0"}


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.integers(1, 32),
            st.sampled_from(MODELS),
            st.lists(st.tuples(REQUESTS, st.integers(0, 4))),
        ),
        min_size=1,
        max_size=6,
    ),
    REQUESTS,
    st.integers(0, 8),
    st.sampled_from(["", "T4", "T4|P100"]),
    st.integers(0, 1000),
)
def test_one_node_and_many_get_the_same_points(
    tmp_path: Path, nodes: list[Any], request: tuple[int, int], cpu: int, models: str, seed: int
) -> None:
    file = written(tmp_path / "policy.json", random_policy(seed))
    made, pods = [], []
    for i, (gpus, cores, model, held) in enumerate(nodes):
        made.append(gpu_node(f"n{i}", gpus, cpu=cores, model=model))
        pods += [
            gpu_pod(f"p{i}-{j}", milli, count, cpu=asked, node=f"n{i}")
            if milli
            else gpu_pod(f"p{i}-{j}", cpu=asked, node=f"n{i}")
            for j, ((milli, count), asked) in enumerate(held)
        ]
    cluster = make_cluster(made, pods)
    plugin = make_plugin(LearnedScore, cluster, policy=str(file), knowledge=TYPICAL_WITH_MODELS)
    milli, count = request
    pod = gpu_pod("arrives", milli, count, cpu=cpu, models=models) if milli else gpu_pod("arrives", cpu=cpu)
    cycle = Cycle(pod, cluster)
    plugin.answer_key(pod)
    many = plugin.score(cycle, Nodes(cluster)).tolist()
    assert all(0 <= points <= 100 for points in many)
    rows = Nodes(cluster).rows.tolist()
    assert many == [plugin.score_node(cycle, NodeInfo(cluster, row)) for row in rows]
    found = plugin._rows
    assert found is not None
    known = found.of(*_wanted(cycle))
    state = {row: found.linear.base(found.node_state(row), *_asked(cycle))[0] for row in rows}
    for row in rows:
        assert known.base[row] == pytest.approx(state[row], abs=1e-9)
    reversed_cluster = make_cluster(made[::-1], pods)
    other = make_plugin(LearnedScore, reversed_cluster, policy=str(file), knowledge=TYPICAL_WITH_MODELS)
    by_name = dict(zip([cluster.names[row] for row in rows], many, strict=True))
    assert raw_scores(other, pod, reversed_cluster) == by_name, "the order of nodes makes no difference"


def _asked(cycle: Cycle) -> tuple[int, Any, int]:
    cpu, request = _wanted(cycle)
    return cpu, request, group_of(request.gpus, request.milli)


def test_what_comes_later_changes_no_earlier_decision(tmp_path: Path) -> None:
    """Counted from the pods seen: the first decisions are the same whatever follows."""
    file = written(tmp_path / "policy.json", random_policy(3))
    shapes = [(500, 1, 2), (1000, 1, 4), (250, 1, 1), (0, 0, 3), (1000, 2, 8)]

    def decisions(order: list[int]) -> list[tuple[str, str]]:
        found = World("GpuShare", "LearnedScore", args={"LearnedScore": {"policy": str(file)}})
        found.add(*(gpu_node(f"n{i}", 1 + i % 4, cpu=16, model=MODELS[i % 3]) for i in range(12)))
        for number, kind in enumerate(order):
            milli, count, cpu = shapes[kind]
            name = f"p{number}"
            found.attempt(gpu_pod(name, milli, count, cpu=cpu) if milli else gpu_pod(name, cpu=cpu))
        return found.bound

    rng = np.random.default_rng(5)
    same, one, other = (rng.integers(0, 5, 20).tolist() for _ in range(3))
    first, second = decisions([*same, *one]), decisions([*same, *other])
    early = {f"p{i}" for i in range(20)}
    assert [each for each in first if each[0] in early] == [each for each in second if each[0] in early]
    assert decisions([*same, *one]) == first


# The guard


def attempt(found: World, name: str) -> None:
    found.attempt(gpu_pod(name, 100, cpu=1))


@pytest.mark.parametrize(
    ("breakage", "reason"),
    [
        (lambda file: file.unlink(), "no_model"),
        (lambda file: file.write_bytes(file.read_bytes()[:100]), "schema"),
        (lambda file: file.write_bytes(encoded(FGD).replace(b"1.0", b"NaN")), "nan"),
        (lambda file: file.write_bytes(b"x" * 17_000_000), "schema"),
    ],
)
def test_a_policy_that_breaks_while_running_makes_the_fallback_decide_at_once(
    file: Path, breakage: Any, reason: str
) -> None:
    found = world(file)
    attempt(found, "before")
    breakage(file)
    attempt(found, "after")
    guard = learned(found).guard
    assert guard.fallbacks[""] == 1
    assert guard.fallbacks[reason] == 1
    assert [pod for pod, _ in found.bound] == ["before", "after"]
    file.unlink(missing_ok=True)
    written(file, FGD)
    attempt(found, "repaired")
    assert guard.fallbacks[""] == 2


def test_a_broken_policy_at_the_start_is_bad_input(tmp_path: Path) -> None:
    cluster = make_cluster([gpu_node("n1", 1)])
    with pytest.raises(PluginError, match="cannot be read"):
        make_plugin(LearnedScore, cluster, policy=str(tmp_path / "missing.json"))


def test_a_model_that_raises_is_counted_and_paused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = world(file)
    plugin = learned(found)

    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(plugin, "_scores_for", fail)
    for i in range(8):
        attempt(found, f"p{i}")
    assert len(found.bound) == 8
    assert plugin.guard.fallbacks["exception"] == 5
    assert plugin.guard.fallbacks["breaker_open"] == 3


def test_what_would_be_late_is_left_to_the_fallback_and_computed_afterwards(file: Path) -> None:
    found = world(file)
    plugin = learned(found)
    found.add(gpu_pod("late", 100, cpu=1))
    assert plugin._rows is not None
    plugin._rows._requests.clear()
    plugin.guard._per_node = 1.0
    found.try_next()
    assert plugin.guard.fallbacks["timeout"] == 1
    assert len(found.bound) == 1
    assert len(plugin._rows._requests) == 1, "prepared for the next pod of its shape"
    plugin.guard._per_node = 0.0
    attempt(found, "next")
    assert plugin.guard.fallbacks[""] == 1


def test_a_pod_that_comes_has_its_nodes_computed_before_its_decision(file: Path) -> None:
    found = world(file)
    plugin = learned(found)
    found.add(gpu_pod("new", 100, cpu=1))
    assert plugin._rows is not None
    assert len(plugin._rows._requests) == 1
    assert all(each.cursor.at_end for each in plugin._rows._requests.values())


def test_scores_that_are_no_numbers_are_counted(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = world(file)
    plugin = learned(found)
    monkeypatch.setattr(RowScores, "_extra", lambda *_: float("nan"))
    attempt(found, "new")
    assert len(found.bound) == 1
    assert plugin.guard.fallbacks["nan"] == 1


def test_states_outside_the_trained_range_make_the_fallback_decide(tmp_path: Path) -> None:
    ranges = {"nfull": (0.0, 0.5), "st4": (0.0, 0.0), "npart": (5.0, 6.0)}
    found = world(written(tmp_path / "policy.json", policy({"F": 1.0}, trained_on=TrainedOn(ranges=ranges))))
    attempt(found, "new")
    assert learned(found).guard.fallbacks["ood"] == 1
    assert len(found.bound) == 1


def test_pods_unlike_those_of_the_training_make_the_fallback_decide(tmp_path: Path) -> None:
    from podium_plugins.gpu.typical_pods import TypicalPod

    trained = TrainedOn(classes=(TypicalPod(cpu=64, gpu_count=8),))
    file = written(tmp_path / "policy.json", policy({"F": 1.0}, trained_on=trained))
    found = World("GpuShare", "LearnedScore", args={"LearnedScore": {"policy": str(file)}})
    found.add(gpu_node("n1", 2, cpu=6), gpu_node("n2", 2, cpu=8))
    plugin = learned(found)
    for _ in range(700):
        plugin.observe(Resource.POD, None, gpu_pod("seen", 100, cpu=1))
    attempt(found, "new")
    assert plugin.guard.fallbacks["drift"] == 1


def test_pods_that_differ_a_little_from_those_of_the_training_are_no_drift(tmp_path: Path) -> None:
    from podium_plugins.gpu.typical_pods import TypicalPod

    trained = TrainedOn(classes=(TypicalPod(cpu=10, gpu_count=1), TypicalPod(cpu=1, gpu_count=1, gpu_milli=100)))
    file = written(tmp_path / "policy.json", policy({"F": 1.0}, trained_on=trained))
    found = World("GpuShare", "LearnedScore", args={"LearnedScore": {"policy": str(file)}})
    found.add(gpu_node("n1", 2, cpu=6), gpu_node("n2", 2, cpu=8))
    plugin = learned(found)
    for number in range(700):
        plugin.observe(Resource.POD, None, gpu_pod("seen", *((100,), (1000,))[number % 2], cpu=(1, 11)[number % 2]))
    attempt(found, "new")
    assert plugin.guard.fallbacks[""] == 1
    assert plugin.drift == pytest.approx(0.0, abs=0.01)


def test_a_model_that_fails_too_often_is_demoted_until_another_policy_comes(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = world(file, log=str(file.with_suffix(".log")))
    plugin = learned(found)
    assert plugin.mode == "active"

    def fails(*_: Any) -> Any:
        raise RuntimeError("broken")

    with monkeypatch.context() as broken:
        broken.setattr(plugin, "_model_scores", fails)
        for number in range(300):
            attempt(found, f"p{number}")
            found.intake.delete(found.cluster.pods[f"default-p{number}"].pod)
            found.clock.advance(31.0)  # the breaker closes again
            plugin.guard.generation += 1
    assert len(found.bound) == 300
    assert plugin.mode == "demoted"
    assert plugin.health.demotions == 1
    assert any("no longer decides: 100.0% of its last answers were late or failed" in each for each in found.reports)
    attempt(found, "well-again")
    assert plugin.guard.fallbacks["demoted"] == 1, "it answers, and is compared, but does not decide"
    assert sum(plugin.health.comparisons.values()) == 1
    written(file, policy({"F": 1.0, "R1": -0.5}))
    attempt(found, "another-policy")
    assert plugin.mode == "active"
    assert plugin.guard.fallbacks[""] == 1


def test_on_trial_every_decision_is_compared(file: Path) -> None:
    for mode, name in (("shadow", "shadow"), ("canary:0.5", "canary")):
        found = world(file, mode=mode)
        for number in range(6):
            attempt(found, f"p{number}")
        plugin = learned(found)
        assert sum(plugin.health.comparisons.values()) == 6
        assert plugin.mode == name
        assert len(plugin.health.seconds(0.5)) == 1
    active = world(file)
    attempt(active, "new")
    assert not learned(active).health.comparisons


def test_modes(file: Path, tmp_path: Path) -> None:
    log = tmp_path / "decisions"
    found = world(file, mode="shadow", log=str(log))
    attempt(found, "new")
    compared, decided = (json.loads(line) for line in log.read_text().splitlines())
    assert compared["fallback"] == ["n2"]
    assert compared["nodes"] == 2
    assert decided["source"] == "shadow"
    summary = sum_up(log.read_bytes().splitlines())
    assert (summary.decisions, summary.compared, summary.fallback_rate) == ({"shadow": 1}, 1, 0.0)
    assert sum_up([b'{"source": "timeout"}', b'{"source": "model"}', b"nonsense", b"[]"]).fallback_rate == 0.5
    off = world(file, mode="off")
    attempt(off, "new")
    assert off.bound == found.bound
    shares = world(file, mode="canary:0.5")
    for i in range(6):
        attempt(shares, f"p{i}")
    assert 0 < learned(shares).guard.fallbacks["canary"] < 6
