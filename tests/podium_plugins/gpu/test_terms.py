"""Terms of nodes: hand-computed ones, and that the forms for one node and for many agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_plugins.gpu.knowledge import knowledge_of
from podium_plugins.gpu.request import GpuRequest
from podium_plugins.gpu.terms import (
    ACTION,
    LOGR,
    LOGR_AFTER,
    STATE,
    TERMS,
    action_of,
    group_of,
    state_of,
    states_of,
    weighed,
)
from podium_plugins.gpu.typical_pods import PodType

KNOWN = knowledge_of([PodType(10_000, GpuRequest(1, 1000), 1), PodType(3_000, GpuRequest(1, 300), 1)])
"""rho is 10 cores per GPU; shares are of 300."""


def state(cpu: int, free: list[int]) -> dict[str, float]:
    out = [0.0] * len(STATE)
    state_of(cpu, free, KNOWN, out)
    return dict(zip(STATE, out, strict=True))


def test_terms_by_hand() -> None:
    found = state(24_000, [1000, 1000, 650, 0])
    assert found["st4"] == 0.0
    assert found["st12"] == pytest.approx(2.65 - 2.0)
    assert found["st24"] == pytest.approx(2.65 - 1.0)
    assert found["surplus"] == 0.0
    assert state(50_000, [1000])["surplus"] == pytest.approx(4.0)
    assert found["ufill"] == found["vfill"] == pytest.approx(0.05)  # two shares of 300 fill 600 of 650
    assert (found["nfull"], found["npart"]) == (2.0, 1.0)
    assert found["sqrtRC"] == pytest.approx((2650 * 24_000) ** 0.5 / 20_000)
    assert found["logr"] == pytest.approx(abs(math.log(26_000 / (10_000 * 2.85))))
    assert found["F"] == found["Hg"] == 0.0, "others give these"


def test_terms_of_a_placement_by_hand() -> None:
    before, after, out = [0.0] * len(STATE), [0.0] * len(STATE), [0.0] * len(ACTION)
    state_of(24_000, [1000, 1000], KNOWN, before)

    def placed(cpu: int, free: list[int], pods: int, left: int, equal: int, others: int) -> dict[str, float]:
        state_of(cpu, free, KNOWN, after)
        action_of(cpu, sum(free), before, after, pods, 2, left, equal, others, out)
        return dict(zip(ACTION, out, strict=True))

    share = placed(16_000, [650, 1000], 0, 650, 0, 0)
    assert share == {
        "C1": 0.125, "R1": 1650 / 8000, "CR": 0.125 * 1650 / 8000, "empty": 1.0, "gfree": 1.0, "opened": 1.0,
        "lo": 0.65, "lo2": 0.65 * 0.65, "R1zero": 0.0, "ng": 0.25, "own": 0.0, "oth": 0.0,
        "logr1": after[LOGR], "F1": 0.0, "st12_1": pytest.approx(1.65 - 16 / 12),
    }  # fmt: skip
    whole = placed(1_280, [0, 0], 1, -1, 2, 0)
    assert {term: value for term, value in whole.items() if value} == {
        "C1": 0.01, "gfree": 1.0, "R1zero": 1.0, "ng": 0.25, "own": 1.0, "logr1": after[LOGR],
    }  # fmt: skip
    assert placed(0, [0, 0], 1, -1, 2, 1)["oth"] == 1.0
    weights = [0.0] * len(TERMS)
    weights[STATE.index("nfull")], weights[len(STATE) + ACTION.index("ng")] = 3.0, 2.0
    assert weighed(before, after, out, weights) == 3.0 * 2 + 2.0 * 0.25


def test_a_node_with_less_than_no_cpu_left_counts_as_one_with_none() -> None:
    assert state(-5_000, [1000]) == state(0, [1000])


@given(
    st.lists(st.tuples(st.integers(-100, 128_000), st.lists(st.integers(0, 1000), min_size=4, max_size=4)), min_size=1),
    st.integers(0, 10_000),
    st.integers(0, 5),
)
def test_one_node_and_many_agree(nodes: list[tuple[int, list[int]]], asked: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=len(TERMS))
    number = len(nodes)
    cpu, free = np.array([cpu for cpu, _ in nodes]), np.array([free for _, free in nodes]).T
    after = np.where(free == free.max(axis=0), 0, free)
    pods, equal, others = (rng.integers(0, 2, number) for _ in range(3))
    left = rng.integers(-1, 2, number)
    many = states_of(cpu, free, KNOWN), states_of(cpu - asked, after, KNOWN)
    actions = np.zeros((len(ACTION), number))
    action_of(cpu - asked, after.sum(axis=0), *many, pods, np.full(number, 4), left, equal, others, actions)
    totals = weighed(*many, actions, weights)
    for i in range(number):
        before, rest, action = [0.0] * len(STATE), [0.0] * len(STATE), [0.0] * len(ACTION)
        state_of(int(cpu[i]), free[:, i].tolist(), KNOWN, before)
        state_of(int(cpu[i]) - asked, after[:, i].tolist(), KNOWN, rest)
        action_of(
            int(cpu[i]) - asked, int(after[:, i].sum()), before, rest, int(pods[i]), 4, int(left[i]), int(equal[i]),
            int(others[i]), action,
        )  # fmt: skip
        for one, column, logarithm in ((before, many[0], LOGR), (action, actions, LOGR_AFTER)):
            together = column[:, i].tolist()
            assert one[logarithm] == pytest.approx(together[logarithm], abs=1e-12)
            one[logarithm] = together[logarithm]
            assert one == together, "to the last bit"
        assert weighed(before, rest, action, weights) == pytest.approx(totals[i], abs=1e-9)


def test_groups_of_pods() -> None:
    assert [group_of(*each) for each in ((0, 0), (1, 500), (1, 1000), (8, 1000))] == [0, 1, 2, 3]
