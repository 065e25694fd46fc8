"""Who may be evicted for whom: the rules one by one, with their boundaries."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from podium.kube import Pod
from podium_plugins.qos.ledger import QosLedger
from podium_plugins.qos_aware.precedence import Precedence
from podium_plugins.qos_aware.victims import EvictionLimits, UrgentPod, VictimCost, choose_node
from tests.podium_plugins.qos.test_ledger import T, bound, pod
from tools.kit.builders import make_pod

MARGIN, MINIMUM = 30.0, 30.0
NOW = T + 1000


def judged(pending: Pod, victim: Pod, *, compat: bool, limit: float = 1.0) -> bool:
    ledger = QosLedger(limit=limit, compat=compat)
    ledger.observe(None, victim, NOW)
    ledger.observe(None, pending, NOW)
    return UrgentPod(ledger, EvictionLimits(MARGIN, MINIMUM, compat), pending, NOW).may_evict(victim)


def alone(name: str, created: float, slo: str, **more: str) -> Pod:
    return pod(name, created, controller=name, slo=slo, qosMeasuring="independent", **more)


@pytest.mark.parametrize(
    ("case", "ran", "slo", "asks", "limit", "compat", "fixed"),
    [
        ("R3: the minimum is reached, and there is slack", 300, "0.5", "0.5", 1.0, True, True),
        ("R3: the minimum is not reached", 29, "0.5", "0.4", 1.0, False, False),
        ("R4: more important, whatever has run", 29, "0.5", "0.9", 1.0, True, False),
        ("R4: more important, exactly at the minimum", 30, "0.5", "0.9", 1.0, True, True),
        ("R5: equal, preemption cost nothing, far ahead", 200, "0.9", "0.9", 0.05, True, True),
        ("R3: slack for an exchange of the minimum running time", 70, "0.5", "0.4", 0.05, True, True),
        ("R3: slack, but too little for an exchange", 60, "0.5", "0.4", 0.05, True, False),
        ("no rule: less important, and no slack", 60, "0.9", "0.5", 1.0, False, False),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_the_rules(case: str, ran: int, slo: str, asks: str, limit: float, compat: bool, fixed: bool) -> None:
    victim = bound(alone("v", 1000 - ran, slo), 1000 - ran)
    pending = alone("p", 940, asks)
    assert judged(pending, victim, compat=True, limit=limit) is compat, case
    assert judged(pending, victim, compat=False, limit=limit) is fixed, case


def test_pods_of_one_controller_do_not_evict_each_other() -> None:
    victim, pending = bound(pod("v", 0), 0), pod("p", 900)
    assert not judged(pending, victim, compat=False)


def test_replicas_that_lack_one_are_worth_nothing() -> None:
    ledger = QosLedger()
    together: dict[str, Any] = {"controller": "both", "qosMeasuring": "concurrent", "slo": "1"}
    victim = bound(pod("v", 0, **together), 0)
    for each in (victim, pod("w", 0, **together)):
        ledger.observe(None, each, NOW)
    pending = alone("p", 900, "0.5")
    ledger.observe(None, pending, NOW)
    assert UrgentPod(ledger, EvictionLimits(MARGIN, MINIMUM, False), pending, NOW).may_evict(victim)


def test_lost_work_is_bounded_for_a_more_important_pod_too() -> None:
    tasks: dict[str, Any] = {"controller": "job", "qosMeasuring": "aggregate", "slo": "0.25"}
    lost, other = bound(pod("lost", 0, **tasks), 0), bound(pod("other", 0, **tasks), 0)
    pending = alone("p", 990, "0.9", acceptablePreemptionOverhead="0.05")

    def may_evict(ledger: QosLedger) -> bool:
        return UrgentPod(ledger, EvictionLimits(MARGIN, MINIMUM, False), pending, NOW).may_evict(other)

    ledger = QosLedger(limit=0.05)
    for each in (lost, other, pending):
        ledger.observe(None, each, T + 990)
    assert may_evict(ledger), "it has lost nothing so far"
    ledger.observe(lost, None, T + 995)
    assert not may_evict(ledger)
    generous = QosLedger(limit=0.75)
    for each in (other, pending):
        generous.observe(None, each, T + 990)
    assert may_evict(generous)


def test_work_is_lost_only_for_a_pod_without_slack() -> None:
    tasks: dict[str, Any] = {"controller": "job", "qosMeasuring": "aggregate", "slo": "0.5"}
    task, service = bound(pod("task", 0, **tasks), 0), bound(alone("service", 0, "0.5"), 0)
    ledger = QosLedger()
    for each in (task, service, bound(alone("p", 0, "0.9"), 0)):
        ledger.observe(None, each, NOW)
    ledger.observe(bound(alone("p", 0, "0.9"), 0), None, NOW)
    pending = alone("p", 1000, "0.9")
    ledger.observe(None, pending, NOW)

    def may_evict(victim: Pod, now: float) -> bool:
        return UrgentPod(ledger, EvictionLimits(MARGIN, MINIMUM, False), pending, now).may_evict(victim)

    slack = ledger.metric(pending.metadata.uid, NOW)
    assert slack > MARGIN
    assert may_evict(service, NOW + slack - 1), "it is urgent"
    assert not may_evict(task, NOW + slack - 1)
    assert may_evict(task, NOW + slack + 1)


def test_a_job_a_little_behind_waits_while_others_keep_their_slo() -> None:
    ledger = QosLedger()

    def job(name: str, ran: float) -> str:
        """A Job of one task at a time that has been there for 1000 s; its uid."""
        more: dict[str, Any] = {"controller": name, "qosMeasuring": "aggregate", "slo": "0.5"}
        done = bound(pod(f"{name}-done", 0, **more), 0)
        ledger.observe(None, done, T)
        ledger.observe(done, replace(done, status=replace(done.status, phase="Succeeded")), T + ran)
        waits = pod(name, ran, **more)
        ledger.observe(None, waits, T + ran)
        return waits.metadata.uid

    near, far, kept, lost = job("near", 495), job("far", 480), job("kept", 510), job("lost", 440)
    order = Precedence(ledger, MARGIN)
    assert sorted((near, far, kept, lost), key=lambda uid: order.key(uid, NOW)) == [lost, kept, near, far]


def test_pods_that_are_worth_nothing_to_their_controller_are_the_best_victims() -> None:
    ledger = QosLedger()
    both: dict[str, Any] = {"controller": "both", "qosMeasuring": "concurrent", "slo": "0.9"}
    useless, slack = bound(pod("v", 0, **both), 0), bound(alone("s", 0, "0.5"), 0)
    pending = alone("p", 900, "0.5")
    for each in (useless, pod("w", 0, **both), slack, pending):
        ledger.observe(None, each, NOW)
    ask = UrgentPod(ledger, EvictionLimits(MARGIN, MINIMUM, False), pending, NOW)
    assert choose_node([("a", [ask.cost_of(slack)]), ("b", [ask.cost_of(useless)])], MARGIN) == "b"


def test_a_pod_with_slack_evicts_no_other_and_kube_system_is_never_evicted() -> None:
    victim = bound(alone("v", 0, "0.5"), 0)
    assert not judged(alone("p", 900, "0"), victim, compat=False)
    system = bound(make_pod("s", namespace="kube-system"), 0)
    assert not judged(alone("p", 900, "1"), system, compat=True)


def test_class_order_dominates_the_choice_of_a_node() -> None:
    n1 = ("n1", [VictimCost(0.9, 10, True)])
    n2 = ("n2", [VictimCost(0.5, -400, True), VictimCost(0.5, 100, True)])
    assert choose_node([n1, n2], MARGIN) == "n2"
    assert choose_node([("b", [VictimCost(0.5, 100, True)]), ("a", [VictimCost(0.5, 100, True)])], MARGIN) == "a"
    assert choose_node([("a", [VictimCost(0.5, math.nan, True)])], MARGIN) == "a"
    assert choose_node([], MARGIN) is None
