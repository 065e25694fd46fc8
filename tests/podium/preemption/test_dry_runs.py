"""What is kept of dry runs: the lowest priority on each row, and which results rank best."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.framework import Status
from podium.preemption.dry_runs import (
    HARMLESS,
    NO_PODS,
    UNKNOWN,
    VIOLATING,
    Candidate,
    Harm,
    LowestPriorities,
    Results,
)
from tools.kit.builders import make_cluster, make_node, make_pod

PRIORITIES = st.integers(-3, 3)


@given(st.lists(st.tuples(st.sampled_from(["place", "place", "remove", "look"]), PRIORITIES)), st.randoms())
def test_no_pod_is_of_lower_priority_than_the_lowest(steps: list[tuple[str, int]], rng: random.Random) -> None:
    cluster = make_cluster([make_node("n0"), make_node("n1")])
    lowest = LowestPriorities(cluster)
    for number, (step, priority) in enumerate(steps):
        if step == "place":
            cluster.set_pod(make_pod(f"p{number}", node=f"n{number % 2}", spec={"priority": priority}))
        elif step == "remove" and cluster.pods:
            cluster.remove_pod(rng.choice(sorted(cluster.pods)))
        else:
            known = lowest.refreshed()
            for row, pods in enumerate(cluster.pods_on):
                true = min((placed.pod.priority for placed in pods.values()), default=NO_PODS)
                assert known[row] <= true
    fresh = LowestPriorities(cluster).refreshed().tolist()
    assert fresh == [min((p.pod.priority for p in pods.values()), default=NO_PODS) for pods in cluster.pods_on]


def test_a_row_whose_newest_pod_left_is_counted_anew() -> None:
    cluster = make_cluster([make_node("n0")], [make_pod("high", node="n0", spec={"priority": 5})])
    cluster.set_pod(make_pod("low", node="n0", spec={"priority": 1}))
    lowest = LowestPriorities(cluster)
    assert lowest.refreshed().tolist() == [1]
    cluster.remove_pod(make_pod("low").uid)
    assert lowest.refreshed().tolist() == [5]


@given(st.lists(st.builds(Harm, *[st.integers(0, 2)] * 4, st.sampled_from([-1.0, 0.0, float("-inf")])), min_size=1))
def test_the_least_harm_is_the_smallest_tuple(harms: list[Harm]) -> None:
    results = Results(len(harms))
    for row, harm in enumerate(harms):
        results.note(row, Candidate(row, f"n{row}", (), harm))
    best = results.least_harm(np.arange(len(harms)))
    assert [candidate.row for candidate in best] == [row for row, harm in enumerate(harms) if harm == min(harms)]
    assert results.codes.tolist() == [VIOLATING if harm.violations else HARMLESS for harm in harms]


def test_refusals_come_in_the_order_they_are_met() -> None:
    short, full = Status.unschedulable("short"), Status.unschedulable("full")
    results = Results(5)
    for row, status in ((0, short), (1, full), (3, short)):
        results.note(row, status)
    found = results.refusals(np.array([3, 1, 0, 2]))
    assert [(status, rows.tolist()) for status, rows in found] == [(short, [3, 0]), (full, [1])]
    assert results.codes[4] == UNKNOWN
