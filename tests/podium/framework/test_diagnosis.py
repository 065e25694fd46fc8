"""Why no node would take a pod: statuses by node, who is to blame, and the sentence to the letter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.framework import Code, Status, Verdict
from podium.framework.diagnosis import Diagnosis, NodeStatuses, Refusals
from tools.kit.builders import make_cluster, make_node

CPU = Status.unschedulable("Insufficient cpu").by("Fit")
CPU_AND_MEMORY = Status.unschedulable("Insufficient cpu", "Insufficient memory").by("Fit")
TAINTED = Status.unresolvable("node(s) had untolerated taint(s)").by("Taints")


def diagnosis(*statuses: Status | None, absent: Status | None = None, nodes: int | None = None) -> Diagnosis:
    """Nodes with these statuses, None standing for a node of which nothing was said."""
    said = NodeStatuses(len(statuses), absent)
    for row, status in enumerate(statuses):
        if status is not None:
            said.set(row, status)
    return Diagnosis(len(statuses) if nodes is None else nodes, said)


# The sentence


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        pytest.param(diagnosis(CPU, CPU, CPU), "0/3 nodes are available: 3 Insufficient cpu.", id="one reason"),
        pytest.param(
            diagnosis(TAINTED, CPU_AND_MEMORY, CPU),
            "0/3 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
            id="a node with two reasons counts for both",
        ),
        pytest.param(
            diagnosis(*[CPU] * 10, *[TAINTED] * 2),
            "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint(s).",
            id="10 sorts before 2, as text does",
        ),
        pytest.param(
            diagnosis(CPU, None, None, absent=Status.unresolvable("not named")),
            "0/3 nodes are available: 1 Insufficient cpu, 2 not named.",
            id="nodes of which nothing was said share a reason",
        ),
        pytest.param(
            diagnosis(CPU, None, absent=Status.unresolvable("Insufficient cpu")),
            "0/2 nodes are available: 2 Insufficient cpu.",
            id="which may be a reason of others too",
        ),
        pytest.param(diagnosis(None, None), "0/2 nodes are available:", id="no reasons at all"),
        pytest.param(diagnosis(CPU, nodes=1), "0/1 nodes are available: 1 Insufficient cpu.", id="one node refused"),
    ],
)
def test_the_sentence(found: Diagnosis, sentence: str) -> None:
    assert found.message == sentence


def test_what_pre_filter_says_stands_alone() -> None:
    found = diagnosis(CPU, CPU)
    found.pre_filter_message = "pod has unbound immediate PersistentVolumeClaims"
    assert found.message == "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."


def test_what_post_filter_says_comes_last_as_it_is() -> None:
    found = diagnosis(CPU)
    found.post_filter_message = "preemption: not helpful"
    assert found.message == ("0/1 nodes are available: 1 Insufficient cpu. preemption: not helpful")


@given(st.lists(st.sampled_from([CPU, CPU_AND_MEMORY, TAINTED, None]), min_size=1, max_size=15))
def test_the_sentence_counts_every_reason_of_every_node(statuses: list[Status | None]) -> None:
    absent = Status.unresolvable("other")
    counts: dict[str, int] = {}
    for status in statuses:
        for reason in (status or absent).reasons:
            counts[reason] = counts.get(reason, 0) + 1
    histogram = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    assert diagnosis(*statuses, absent=absent).message == f"0/{len(statuses)} nodes are available: {histogram}."


# Who is to blame


@pytest.mark.parametrize(
    ("status", "unschedulable", "pending"),
    [
        (CPU, {"Fit"}, set()),
        (TAINTED, {"Taints"}, set()),
        (Status.pending("soon").by("Gang"), {"Gang"}, {"Gang"}),
        (Status.unschedulable("nobody's"), set(), set()),
    ],
)
def test_who_is_to_blame(status: Status, unschedulable: set[str], pending: set[str]) -> None:
    found = diagnosis()
    found.blame(status)
    assert (found.unschedulable_plugins, found.pending_plugins) == (unschedulable, pending)


# Statuses by node


def test_a_node_has_the_last_status_it_was_given() -> None:
    statuses = NodeStatuses(4)
    statuses.add_group(CPU, np.array([0, 1, 2]))
    statuses.set(1, TAINTED)
    assert [statuses.get(row) for row in range(4)] == [CPU, TAINTED, CPU, Status(Code.UNRESOLVABLE)]
    assert len(statuses) == 3
    assert {status: rows.tolist() for status, rows in statuses.groups()} == {CPU: [0, 2], TAINTED: [1]}
    assert dict(statuses.counts()) == {CPU: 2, TAINTED: 1}


def test_nodes_by_code_come_in_visiting_order() -> None:
    zones = {"n0": "a", "n1": "a", "n2": "b"}
    cluster = make_cluster(
        [make_node(name, labels={"topology.kubernetes.io/zone": zone}) for name, zone in zones.items()]
    )
    statuses = NodeStatuses(3, Status.unschedulable("whatever"))
    assert statuses.with_code(Code.UNSCHEDULABLE, cluster).tolist() == [0, 2, 1]
    statuses.set(2, TAINTED)
    assert statuses.with_code(Code.UNSCHEDULABLE, cluster).tolist() == [0, 1]
    assert statuses.with_code(Code.UNRESOLVABLE, cluster).tolist() == [2]
    cluster.remove_node("n0")
    assert statuses.with_code(Code.UNSCHEDULABLE, cluster).tolist() == [1]


def test_the_first_plugin_to_refuse_a_row_is_the_one_that_counts() -> None:
    refusals = Refusals(np.array([5, 6, 7]))
    left = np.ones(3, dtype=np.bool_)
    left = refusals.add("Taints", Verdict.reject(np.array([True, False, False]), TAINTED), left)
    assert left.tolist() == [False, True, True]
    left = refusals.add("Fit", Verdict(np.array([-1, 5000, 0]), lambda code: Status.unschedulable(f"{code}")), left)
    assert left.tolist() == [False, False, True]
    assert refusals.passed.tolist() == [False, False, True]
    fit = Status.unschedulable("5000").by("Fit")
    assert [refusals.status(position) for position in range(3)] == [TAINTED, fit, None]
    everything = [(status, rows.tolist()) for status, rows in refusals.kinds(np.ones(3, dtype=np.bool_))]
    assert everything == [(TAINTED, [5]), (fit, [6])]
    assert [status for status, _rows in refusals.kinds(np.array([False, True, True]))] == [fit]


def test_a_verdict_that_refuses_nothing_leaves_no_trace() -> None:
    refusals = Refusals(np.array([0, 1]))
    refusals.add("Fit", Verdict.reject(np.array([False, False]), CPU), np.ones(2, dtype=np.bool_))
    assert refusals.verdicts == []
    assert refusals.passed.all()


@given(st.lists(st.sampled_from([0, -3, -2, 1, 7, 9000]), min_size=1, max_size=12))
def test_rows_are_grouped_by_code_wherever_the_codes_lie(codes: list[int]) -> None:
    refusals = Refusals(np.arange(len(codes)))
    everything = np.ones(len(codes), dtype=np.bool_)
    refusals.add("X", Verdict(np.array(codes), lambda code: Status.unschedulable(str(code))), everything)
    found = {status.message: rows.tolist() for status, rows in refusals.kinds(everything)}
    assert found == {
        str(code): [row for row, each in enumerate(codes) if each == code] for code in set(codes) if code != 0
    }


def test_the_first_of_several_reasons_that_applies_counts() -> None:
    tainted, short = np.array([True, False, True]), np.array([True, True, False])
    verdict = Verdict.first_of((tainted, TAINTED), (short, CPU))
    assert verdict.codes.tolist() == [1, 2, 1]
    assert [verdict.status_of(code) for code in (1, 2)] == [TAINTED, CPU]
