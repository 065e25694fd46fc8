"""What counts as a difference, and what is chance."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.parity.case import Case, Decision, without_chance
from tools.parity.compare import differences, first_of_heap
from tools.parity.dice import Obj
from tools.parity.podium_side import Answer, NodeAnswer


def _case(decision: Decision, start_index: int = 0) -> Case:
    return Case("0-0", "mixed", [], {"metadata": {"namespace": "a", "name": "x"}}, {}, start_index, decision, "1.36")


BOUND = Decision(
    "bound",
    node="n1",
    feasible=["n1", "n2"],
    scores={"n1": {"ImageLocality": 5}, "n2": {"ImageLocality": 5}},
    totals={"n1": 5, "n2": 5},
)
SAME = Answer(
    node="n1",
    message="",
    nodes={name: NodeAnswer(True, scores={"ImageLocality": 5}, total=5) for name in ("n1", "n2")},
    preemption={},
)
FAILED = Decision("unschedulable", message="0/1 nodes are available: 1 Too many pods.")
EVICTS = replace(FAILED, preemption_node="n1", victims=["a/v", "a/w"])


def test_equal_decisions_have_no_differences() -> None:
    assert differences(_case(BOUND), SAME) == []


def test_another_of_two_equal_nodes_differs_where_the_order_is_known() -> None:
    other = replace(SAME, node="n2")
    assert differences(_case(BOUND), other) == ["selected n1, Podium n2"]
    assert differences(_case(BOUND, start_index=-1), other) == []


def test_each_score_and_each_infeasible_node_is_named() -> None:
    nodes = {
        "n1": NodeAnswer(True, scores={"ImageLocality": 4}, total=4),
        "n2": NodeAnswer(False, "NodePorts", ["busy"]),
    }
    assert differences(_case(BOUND), replace(SAME, nodes=nodes)) == [
        "n2: feasible, but Podium rejects it (NodePorts: busy)",
        "n1: ImageLocality scores 5, Podium 4",
        "n1: total 5, Podium 4",
    ]


def test_all_that_is_written_to_a_claim_must_be_equal() -> None:
    given = {"devices": {"results": [{"request": "r", "device": "d"}]}}
    bound = replace(BOUND, allocations={"ns/a": given, "ns/shared": {}})
    assert differences(_case(bound), replace(SAME, allocations={"ns/a": given})) == []
    (line,) = differences(_case(bound), replace(SAME, allocations={"ns/a": {**given, "nodeSelector": {}}}))
    assert line.startswith("claim ns/a: is given ")


def test_shares_times_and_how_amounts_are_written_do_not_count() -> None:
    def allocation(share: str, time: str, amount: str) -> Obj:
        result = {"device": "d", "shareID": share, "consumedCapacity": {"mem": amount}}
        return {"allocationTimestamp": time, "devices": {"results": [result]}}

    assert without_chance(allocation("a", "1", "1024Mi")) == without_chance(allocation("b", "2", "1Gi"))
    assert without_chance(allocation("a", "1", "1024Mi")) != without_chance(allocation("a", "1", "2Gi"))


def test_the_failure_text_must_be_equal_to_the_letter() -> None:
    answer = Answer("", "0/1 nodes are available: 1 Too many pods", {}, {})
    assert differences(_case(FAILED), answer)[0] == "the failure text differs"
    assert differences(_case(FAILED), replace(answer, message=FAILED.message)) == []


@pytest.mark.parametrize(
    ("preemption", "expected"),
    [
        ({"n1": ["a/w", "a/v"]}, []),
        ({"n2": ["a/z"], "n1": ["a/v", "a/w"]}, []),
        ({"n2": ["a/z"]}, ["preemption frees n1, Podium one of ['n2']"]),
        ({"n1": ["a/v"]}, ["victims on n1: ['a/v', 'a/w'], Podium ['a/v']"]),
        ({}, ["preemption frees n1, Podium one of no node"]),
    ],
)
def test_the_node_to_be_freed_must_be_among_the_best_with_the_same_victims(
    preemption: dict[str, list[str]], expected: list[str]
) -> None:
    assert differences(_case(EVICTS), Answer("", EVICTS.message, {}, preemption)) == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_the_first_of_the_heap_is_what_a_binary_heap_pops(totals: list[int]) -> None:
    # The textbook algorithm: sift down from the last parent, the left child unless the right one is better.
    heap = [(total, index) for index, total in enumerate(totals)]
    for parent in range(len(heap) // 2 - 1, -1, -1):
        at = parent
        while (child := 2 * at + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][0] > heap[child][0]:
                child += 1
            if heap[child][0] <= heap[at][0]:
                break
            heap[at], heap[child] = heap[child], heap[at]
            at = child
    assert first_of_heap(totals) == heap[0][1]
