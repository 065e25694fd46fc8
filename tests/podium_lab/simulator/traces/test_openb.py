"""The openb lists, made into what the published experiments submit."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium_lab.simulator import simulate, summarise
from podium_lab.simulator.scenario import OpenbPods
from podium_lab.simulator.traces.openb import arrivals, read_list, submitted, typical
from tests.podium_lab.simulator.scenarios import DATA, EXAMPLES, needs

CAPACITY = 6_212_000
DEFAULT = DATA / "openb" / "openb_pod_list_default.csv"
SAMPLE = EXAMPLES / "traces" / "openb-pods.csv"


def demand(path: Path, target: float, seed: int = 1) -> int:
    return sum(pod.gpus * pod.milli for pod, _ in submitted(read_list(path), target, seed))


def test_a_list_grows_to_its_target_by_clones_behind_the_originals() -> None:
    pods = read_list(SAMPLE)
    names = [name for _, name in submitted(pods, 60_000, 1)]
    assert sorted(names[: len(pods)]) == sorted(pod.name for pod in pods)
    assert names[: len(pods)] != [pod.name for pod in pods]
    assert all("-clone-" in name for name in names[len(pods) :])
    assert len(names) == len(set(names))
    assert 59_000 - 8000 < demand(SAMPLE, 60_000) <= 60_000 + 8000


def test_a_list_that_asks_for_more_shrinks_below_its_target() -> None:
    assert demand(SAMPLE, 20_000) <= 20_000
    assert len(list(submitted(read_list(SAMPLE), 20_000, 1))) < len(read_list(SAMPLE))


def test_a_seed_always_gives_the_same_order() -> None:
    first, again, other = ([name for _, name in submitted(read_list(SAMPLE), 60_000, seed)] for seed in (1, 1, 2))
    assert first == again != other


def test_times_of_the_list_can_be_used() -> None:
    pods = list(arrivals(OpenbPods(list="", times=True), SAMPLE, 1, CAPACITY))
    assert [pod.at for pod in pods] == sorted(pod.at for pod in pods)
    assert all(0 < pod.lifetime <= 9000 for pod in pods)


@needs("openb")
def test_the_default_list_has_35_typical_classes_and_grows_to_about_10800_pods() -> None:
    assert len(typical(DEFAULT)) == 35
    assert len(list(submitted(read_list(DEFAULT), 1.3 * CAPACITY, 42))) == pytest.approx(10_800, abs=150)


@needs("openb")
def test_best_fit_reaches_the_published_allocation() -> None:
    results = simulate(EXAMPLES / "openb.yaml", data=DATA / "openb", profiles=["BestFit"], seeds=[42])
    at = {row.at: row.figures["gpu_allocation_pct"].mean for row in summarise(results)}
    assert at[100] == pytest.approx(92.86, abs=0.6)
    assert at[130] == pytest.approx(93.08, abs=0.6)
    fragmented = {row.at: row.figures["gpu_fragmentation_of_total_pct"].mean for row in summarise(results)}
    assert fragmented[100] == pytest.approx(7.05, abs=0.6)


def test_the_sample_gives_a_row_per_percent() -> None:
    results = simulate(EXAMPLES / "simulate" / "openb-sample.yaml", seeds=1)
    for profile in ("BestFit", "FGD"):
        percents = results["arrived_pct"][results["profile"] == profile].tolist()
        assert percents == sorted(set(percents))
        assert all(percent == int(percent) for percent in percents)
    assert set(results["dropped"].tolist()) != {0}
