"""CapacityScheduling in a running scheduler: who is rejected, who is evicted for whom, and what wakes a pod."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework import Nomination, Status
from podium.kube import Pod
from podium_plugins.capacity_scheduling.quota import RESOURCE
from tests.together.quota_worlds import QuotaWorld, make_quota, quota_pod

OVER_TOTAL = "Pod {} is rejected in PreFilter because total ElasticQuota used is more than min"
OVER_MAX = "Pod {} is rejected in PreFilter because ElasticQuota {} is more than Max"


def borrowed_world() -> tuple[QuotaWorld, list[Pod]]:
    """The worked example: two quotas of min 4 and max 6, a node of 8 cpu; q1 has borrowed 2."""
    found = QuotaWorld()
    for namespace in ("q1", "q2"):
        found.set_quota(namespace, {"cpu": 4}, {"cpu": 6})
    pods = [quota_pod(f"a{number}", "q1", node="n1", priority=number) for number in range(3)]
    found.add(*pods, quota_pod("b1", "q2", node="n1"))
    return found, pods


def test_a_namespace_within_its_min_reclaims_what_another_borrowed() -> None:
    found, pods = borrowed_world()
    found.attempt(quota_pod("b2", "q2"))
    placement = "preemption: found a potential placement for pod on node n1, preempting 1 victims"
    message = f"0/1 nodes are available: {OVER_TOTAL.format('q2/b2')}. {placement}"
    assert found.failures[-1] == ("q2/b2", "Unschedulable", message, Nomination("n1"))
    assert found.evicted == ["a0"]  # the least important, and no other
    found.delete(pods[0])
    found.try_next()
    assert found.bound == [("b2", "n1")]


def test_reclaiming_asks_for_no_priority() -> None:
    found, _pods = borrowed_world()
    found.attempt(quota_pod("b2", "q2", priority=-5))
    assert found.evicted == ["a0"]


def test_what_is_over_max_waits_even_where_nodes_are_free() -> None:
    found = QuotaWorld(nodes={"n1": 100})
    found.set_quota("q1", {"cpu": 50}, {"cpu": 6})
    found.attempt(quota_pod("a", "q1", 4), quota_pod("b", "q1", 2), quota_pod("c", "q1", 1))
    assert found.bound == [("a", "n1"), ("b", "n1")]
    assert found.message.startswith(f"0/1 nodes are available: {OVER_MAX.format('q1/c', 'q1')}.")
    assert found.evicted == []


def test_a_request_of_0_is_measured_by_what_is_used_already() -> None:
    """As in the original: a namespace that is over its max of gpus takes no pod that names them."""
    found = QuotaWorld(nodes={"n1": 100})
    found.set_quota("q1", {"cpu": 50, "x.io/gpu": 8}, {"cpu": 60, "x.io/gpu": 1})
    found.add(quota_pod("old", "q1", node="n1", requests={"cpu": 1, "x.io/gpu": 2}))
    found.attempt(quota_pod("none", "q1", requests={"cpu": 1, "x.io/gpu": 0}))
    assert found.message.startswith(f"0/1 nodes are available: {OVER_MAX.format('q1/none', 'q1')}.")
    none = quota_pod("none", "q1", requests={"cpu": 1, "x.io/gpu": 0})
    assert "q1 uses 2 of max 1 x.io/gpu; this pod would exceed max by 1" in found.plugin.explain(none)
    found.attempt(quota_pod("silent", "q1", requests={"cpu": 1}))
    assert found.bound == [("silent", "n1")]


BOUNDS: list[tuple[str, Any, Any, dict[str, Any], bool]] = [
    ("no max at all is no ceiling", {"cpu": 8}, None, {"cpu": 8}, True),
    ("a max that leaves memory out takes no memory", {"cpu": 8, "memory": 8}, {"cpu": 8}, {"memory": 1}, False),
    ("a max that leaves a gpu out does not bound it", {"cpu": 8, "x.io/gpu": 8}, {"cpu": 8}, {"x.io/gpu": 1}, True),
    ("a min that leaves a gpu out guarantees none", {"cpu": 8}, {"cpu": 8}, {"x.io/gpu": 1}, False),
    ("no min at all guarantees nothing", None, {"cpu": 8}, {"cpu": 1}, False),
    ("a bound on pods bounds nothing", {"cpu": 8, "pods": 0}, {"cpu": 8, "pods": 0}, {"cpu": 1}, True),
    ("exactly max is within it", {"cpu": "2500m"}, {"cpu": "2500m"}, {"cpu": "2500m"}, True),
    ("a thousandth more is not", {"cpu": 8}, {"cpu": "2500m"}, {"cpu": "2501m"}, False),
    ("a pod that requests nothing is within any quota", {}, {}, {}, True),
]


@pytest.mark.parametrize(
    ("least", "most", "requests", "fits"), [case[1:] for case in BOUNDS], ids=[c[0] for c in BOUNDS]
)
def test_absent_and_present_bounds(least: Any, most: Any, requests: dict[str, Any], fits: bool) -> None:
    found = QuotaWorld()
    found.set_quota("q1", least, most)
    found.attempt(quota_pod("a", "q1", requests=requests))
    assert bool(found.bound) is fits


def test_a_namespace_without_a_quota_is_not_bounded() -> None:
    found = QuotaWorld()
    found.set_quota("q1", {"cpu": 0}, {"cpu": 0})
    found.attempt(quota_pod("free", "other", 8))
    assert found.bound == [("free", "n1")]


# Who may be evicted for whom

VICTIMS: list[tuple[str, Pod, list[str]]] = [
    ("a borrower evicts lower priority in its own namespace", quota_pod("p", "q1", priority=5), ["own-low"]),
    ("and not an equal one", quota_pod("p", "q1", priority=1), []),
    ("within min it evicts borrowers, whatever their priority", quota_pod("p", "q3", priority=0), ["own-low"]),
    ("outside quotas only pods outside are evicted", quota_pod("p", "none", priority=5), ["outside"]),
    ("and only of lower priority", quota_pod("p", "none", priority=0), []),
]


@pytest.mark.parametrize(("preemptor", "victims"), [case[1:] for case in VICTIMS], ids=[case[0] for case in VICTIMS])
def test_who_may_be_evicted_for_whom(preemptor: Pod, victims: list[str]) -> None:
    found = QuotaWorld(nodes={"n1": 8})
    found.set_quota("q1", {"cpu": 2}, {"cpu": 10})
    found.set_quota("q2", {"cpu": 2}, {"cpu": 10})
    found.set_quota("q3", {"cpu": 2}, {"cpu": 10})
    found.add(
        quota_pod("own-low", "q1", node="n1", priority=1),
        quota_pod("own-high", "q1", node="n1", priority=9),
        quota_pod("other", "q2", node="n1", priority=0),
        quota_pod("outside", "none", node="n1", priority=0),
    )
    found.attempt(preemptor)
    assert found.evicted == victims


def test_where_eviction_on_one_node_frees_too_little_of_the_quotas_nobody_is_evicted() -> None:
    found = QuotaWorld(nodes={"n1": 8, "n2": 8})
    found.set_quota("q1", {"cpu": 0}, {"cpu": 16})
    found.set_quota("q2", {"cpu": 4}, {"cpu": 16})
    found.add(quota_pod("a1", "q1", node="n1"), quota_pod("a2", "q1", node="n2"))
    found.attempt(quota_pod("b", "q2", 4))
    assert found.evicted == []
    assert "preemption: 0/2 nodes are available: 2 global quota max exceeded." in found.message


def test_a_pod_that_never_preempts_says_so() -> None:
    found, _pods = borrowed_world()
    found.attempt(quota_pod("b2", "q2", spec={"preemptionPolicy": "Never"}))
    assert found.evicted == []
    assert found.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_while_a_victim_is_leaving_no_other_is_evicted() -> None:
    found, _pods = borrowed_world()
    found.add(quota_pod("a0", "q1", node="n1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    found.attempt(quota_pod("b2", "q2", status={"nominatedNodeName": "n1"}))
    assert found.evicted == []
    assert found.message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")


def test_a_nominated_pod_counts_for_those_behind_it() -> None:
    found = QuotaWorld(nodes={"n1": 8})
    found.set_quota("q1", {"cpu": 8}, {"cpu": 6})
    found.scheduler.nominator.nominate(quota_pod("first", "q1", 4, priority=5), "n1")
    found.attempt(quota_pod("second", "q1", 4, priority=5), quota_pod("higher", "q1", 4, priority=6))
    assert found.bound == [("higher", "n1")]
    assert OVER_MAX.format("q1/second", "q1") in found.failures[0].message


# Accounting


def test_pods_that_were_there_before_their_quota_count() -> None:
    found = QuotaWorld()
    found.add(quota_pod("old", "q1", 4, node="n1"))
    found.set_quota("q1", {"cpu": 8}, {"cpu": 4})
    found.attempt(quota_pod("new", "q1", 1))
    assert OVER_MAX.format("q1/new", "q1") in found.message


def test_pods_placed_in_one_go_see_each_other() -> None:
    found = QuotaWorld(nodes={"n1": 100})
    found.set_quota("q1", {"cpu": 20}, {"cpu": 7})
    found.add(*(quota_pod(f"p{number}", "q1", 2) for number in range(10)))
    while found.scheduler.schedule_one() is not None:
        pass
    assert len(found.bound) == 3
    assert found.scheduler.answer_cache.decisions, "pods with one signature are decided by the answer cache"


def test_a_pod_that_could_not_be_bound_counts_no_more() -> None:
    found = QuotaWorld()
    found.set_quota("q1", {"cpu": 4}, {"cpu": 4})
    found.bind_answer = Status.error("no")
    found.attempt(quota_pod("a", "q1", 4))
    found.bind_answer = None
    found.attempt(quota_pod("b", "q1", 4))
    assert found.bound == [("b", "n1")]


# What wakes a pod


def where(found: QuotaWorld) -> str:
    """The queue that pod a is in."""
    queued = found.queue.get("q1/a")
    return "" if queued is None else queued.queue


def test_a_quota_that_grows_wakes_the_pod_and_its_status_does_not() -> None:
    found = QuotaWorld()
    found.set_quota("q1", {"cpu": 2}, {"cpu": 2})
    found.attempt(quota_pod("a", "q1", 4))
    found.set_quota("q1", {"cpu": 2}, {"cpu": 2})
    assert where(found) == "unschedulable"
    found.set_quota("q1", {"cpu": 4}, {"cpu": 4})
    assert where(found) == "backoff"
    found.pass_time(20)
    found.try_next()
    assert found.bound == [("a", "n1")]


def test_a_quota_that_goes_frees_its_pods() -> None:
    found = QuotaWorld()
    found.set_quota("q1", {"cpu": 2}, {"cpu": 2})
    found.attempt(quota_pod("a", "q1", 4))
    found.drop_quota("q1")
    found.pass_time(20)
    found.try_next()
    assert found.bound == [("a", "n1")]


def test_the_end_of_a_pod_outside_quotas_wakes_none() -> None:
    found = QuotaWorld()
    outside, inside = quota_pod("out", "none", 1, node="n1"), quota_pod("in", "q2", 1, node="n1")
    found.set_quota("q1", {"cpu": 2}, {"cpu": 2})
    found.set_quota("q2", {"cpu": 2}, {"cpu": 2})
    found.add(outside, inside)
    found.attempt(quota_pod("a", "q1", 4))
    found.delete(outside)
    assert where(found) == "unschedulable"
    found.delete(inside)
    assert where(found) == "backoff"


# Bad quotas


@pytest.mark.parametrize(
    ("least", "most", "problem"),
    [
        ({"cpu": -1}, None, "spec.min.cpu must not be negative, got -1"),
        ({"cpu": "a lot"}, None, 'spec.min.cpu: quantity "a lot"'),
        (None, {"memory": "1Zi"}, 'spec.max.memory: quantity "1Zi"'),
        ({"cpu": ["1"]}, None, "Expected"),
    ],
)
def test_the_pods_of_a_quota_that_cannot_be_read_wait_and_others_do_not(least: Any, most: Any, problem: str) -> None:
    found = QuotaWorld()
    found.set_quota("q1", least, most)
    found.set_quota("q2", {"cpu": 4}, {"cpu": 4})
    found.add(quota_pod("old", "q1", 1, node="n1"))
    found.attempt(quota_pod("a", "q1", 1), quota_pod("b", "q2", 4))
    assert found.bound == [("b", "n1")]
    assert f"ElasticQuota q1/q1 cannot be used: {problem}" in found.failures[0].message
    assert f"ElasticQuota q1/q1: {problem}" in found.reports[0]
    found.set_quota("q1", {"cpu": 4}, {"cpu": 4})
    found.pass_time(20)
    found.try_next()
    assert found.bound[1:] == [("a", "n1")]


def test_a_min_above_max_is_reported_and_counts() -> None:
    found = QuotaWorld()
    found.set_quota("q1", {"cpu": 4}, {"cpu": 2})
    found.attempt(quota_pod("a", "q1", 2), quota_pod("b", "q1", 1))
    assert found.bound == [("a", "n1")]
    assert found.reports == ["ElasticQuota q1/q1: spec.min is more than spec.max for cpu: the pods never get all of it"]


def test_of_two_quotas_in_a_namespace_the_oldest_counts() -> None:
    found = QuotaWorld()
    found.set_quota("q1", {"cpu": 8}, {"cpu": 8}, name="young", created="2026-02-02T00:00:00Z")
    found.set_quota("q1", {"cpu": 1}, {"cpu": 1}, name="old", created="2026-01-01T00:00:00Z")
    found.attempt(quota_pod("a", "q1", 2))
    assert found.bound == []
    ignored = "it is ignored: a namespace has one quota, and q1/old is older; delete one of them"
    assert found.reports == [f"ElasticQuota q1/young: {ignored}"]
    assert [(each.regarding.name, each.reason) for each in found.scheduler.problems] == [
        ("young", "IgnoredElasticQuota")
    ]
    found.drop_quota("q1", "old")
    assert list(found.scheduler.problems) == []
    found.pass_time(20)
    found.try_next()
    assert found.bound == [("a", "n1")]


def test_what_is_wrong_with_a_quota_is_said_once_and_again_when_it_is_something_else() -> None:
    found = QuotaWorld()
    for status in ({}, {"used": {"cpu": 1}}):
        quota = {**make_quota("q1", {"cpu": -1}), "status": status}
        found.intake.set_custom(RESOURCE, "q1/q1", quota)
    assert len(found.reports) == 1
    found.set_quota("q1", {"cpu": -2})
    assert len(found.reports) == 2
    found.set_quota("q1", {"cpu": 2})
    assert list(found.scheduler.problems) == []
    found.set_quota("q1", {"cpu": -2})
    assert len(found.reports) == 3


def test_a_quota_deleted_under_its_pods_is_said_and_bounds_nothing_any_more() -> None:
    found = QuotaWorld()
    found.set_quota("q1", {"cpu": 2}, {"cpu": 2})
    found.attempt(quota_pod("a", "q1", 2), quota_pod("b", "q1", 2))
    assert found.bound == [("a", "n1")]
    found.drop_quota("q1")
    gone = "it was deleted while 1 pods of its namespace have a node; no quota bounds the namespace now"
    assert found.reports == [f"ElasticQuota q1/q1: {gone}"]
    found.pass_time(20)
    found.try_next()
    assert found.bound == [("a", "n1"), ("b", "n1")]
    found.set_quota("q2", {"cpu": 2})
    found.drop_quota("q2")
    assert len(found.reports) == 1  # no pods, no problem
