"""Schedulers, client and API under faults: some dozens of seeds, each of which must hold all invariants."""

import os
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest

from podium.plugins import load_registry
from tools.chaos.final_checks import NO_POD_LOST, NOTHING_LEFT, SAME_CLUSTER
from tools.chaos.invariants import KNOWN_BOUND, NOT_OVERCOMMITTED, NOTHING_BREAKS, ONE_BINDING, ONLY_THE_LEADER
from tools.chaos.request_faults import EVENT_FAULTS, REQUEST_FAULTS
from tools.chaos.scenario import ScenarioOutcome, run_scenario
from tools.chaos.seeds import Summary, UnknownScenarioError, check_workload, reproduce, run_seeds
from tools.chaos.workloads import WORKLOADS
from tools.kit.effort import examples

REGISTRY = load_registry()


@cache
def basic(seed: int) -> ScenarioOutcome:
    return run_scenario(seed, WORKLOADS["basic"], REGISTRY)


@pytest.mark.parametrize("first", [1, *(pytest.param(first, marks=pytest.mark.long) for first in range(5, 41, 4))])
def test_all_invariants_hold(first: int) -> None:
    for seed in range(first, first + examples(4)):
        outcome = run_scenario(seed, None, REGISTRY)
        assert outcome.violations == [], reproduce(seed, None)


@pytest.mark.parametrize("seed", [101, pytest.param(102, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", WORKLOADS)
def test_all_invariants_hold_with_each_workload(name: str, seed: int) -> None:
    outcome = basic(seed) if name == "basic" else run_scenario(seed, WORKLOADS[name], REGISTRY)
    assert outcome.violations == [], reproduce(seed, name)
    assert outcome.bound > 0


@pytest.mark.long
def test_a_few_seeds_have_every_kind_of_fault_and_check_every_invariant() -> None:
    summary = Summary()
    for outcome in run_seeds(range(201, 209), None, workers=2):
        summary.add(outcome)
    assert summary.failed == []
    assert summary.seeds == 8
    missing = {*REQUEST_FAULTS, *EVENT_FAULTS} - summary.injected.keys()
    assert len(missing) <= 3, missing  # each scenario leaves half of them out
    settled = (NO_POD_LOST, SAME_CLUSTER, NOTHING_LEFT, NOTHING_BREAKS)
    assert all(summary.checked[each] == 8 for each in settled)
    assert all(summary.checked[each] > 300 for each in (ONE_BINDING, KNOWN_BOUND, NOT_OVERCOMMITTED, ONLY_THE_LEADER))


@pytest.mark.long
def test_a_seed_is_the_same_run_in_every_process_whatever_hashes_are() -> None:
    script = (
        "from podium.plugins import load_registry; from tools.chaos.scenario import run_scenario\n"
        "for seed in (7, 27): print('\\n'.join(run_scenario(seed, None, load_registry()).transcript))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for number in ("1", "2")
    ]
    assert len(printed[0].splitlines()) > 500
    assert printed[0] == printed[1]


def test_seeds_differ() -> None:
    first, second = (basic(seed) for seed in (101, 1))
    assert first.transcript != second.transcript


def test_a_workload_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UnknownScenarioError, match='there is no workload "much": choose one of basic, '):
        check_workload("much")


def test_what_several_seeds_did_is_added_up() -> None:
    summary = Summary()
    for outcome in run_seeds([1, 2], "basic", workers=1):
        assert outcome.transcript == []
        summary.add(outcome._replace(checked=Counter(a=2), injected=Counter(b=1), violations=[]))
    data = summary.to_data("basic")
    assert (data["seeds"], data["invariants"], data["faults"], data["failures"]) == (2, {"a": 4}, {"b": 2}, [])
