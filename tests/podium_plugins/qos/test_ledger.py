"""What happens to pods, as accounts tell it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from podium.kube import Condition, Pod, PodStatus
from podium.kube.meta import OwnerReference, format_time
from podium_plugins.qos.formulas import QosSums
from podium_plugins.qos.history import HISTORY, read_history, write_history
from podium_plugins.qos.ledger import IDLE, QosLedger
from podium_plugins.qos.page import controller_rows, controllers_text, plain, slot_rows, slots_text
from tools.kit.builders import make_pod

T = 1_000_000.0


def pod(name: str, created: float = 0.0, **annotations: str) -> Pod:
    written = {"controller": "web", "slo": "0.8", "qosMeasuring": "average", **annotations}
    return make_pod(name, metadata={"annotations": written, "creationTimestamp": format_time(T + created)})


def bound(waiting: Pod, at: float, start: float | None = None, node: str = "n1", phase: str = "Running") -> Pod:
    scheduled = Condition(type="PodScheduled", status="True", last_transition_time=format_time(T + at))
    began = format_time(T + (at if start is None else start))
    status = PodStatus(phase=phase, conditions=(scheduled,), start_time=began)
    return replace(waiting, spec=replace(waiting.spec, node_name=node), status=status)


def leaving(there: Pod) -> Pod:
    return replace(there, metadata=replace(there.metadata, deletion_timestamp=format_time(T)))


def sums(ledger: QosLedger, now: float, uid: str | None = None, key: str = "web") -> QosSums:
    account = ledger.accounts[key]
    found = None if uid is None else ledger.find(uid)
    return account.sums(None if found is None else found[1], T + now)


def test_a_pod_waits_is_bound_and_runs() -> None:
    ledger, waiting = QosLedger(), pod("a")
    ledger.observe(None, waiting, T)
    assert sums(ledger, 10) == QosSums(0, 0, 10, 0, 1, 0)
    chosen = replace(bound(waiting, 10, phase="Pending"), status=bound(waiting, 10).status)
    ledger.observe(waiting, replace(chosen, status=replace(chosen.status, start_time=None)), T + 10)
    assert sums(ledger, 20) == QosSums(10, 0, 10, 0, 1, 1), "it counts as running until its node says otherwise"
    running = bound(waiting, 10, 13)
    ledger.observe(waiting, running, T + 14)
    assert sums(ledger, 20) == QosSums(7, 0, 10, 3, 1, 1)
    ledger.observe(running, None, T + 20)
    assert sums(ledger, 99) == QosSums(7, 0, 10, 3, 1, 1)


def test_a_pod_marked_for_deletion_leaves_its_slot_and_runs_on() -> None:
    ledger = QosLedger()
    running = bound(pod("a"), 0)
    ledger.observe(None, running, T)
    ledger.observe(running, leaving(running), T + 10)
    ledger.observe(None, pod("b", 10), T + 10)
    account = ledger.accounts["web"]
    assert [each and each.uid for each in account.slots] == ["default-b"]
    assert sums(ledger, 15) == QosSums(15, 0, 5, 0, 2, 1)


def test_success_after_the_mark_is_lost_work() -> None:
    ledger = QosLedger()
    running = bound(pod("a", qosMeasuring="aggregate"), 0)
    ledger.observe(None, running, T)
    gone = leaving(running)
    ledger.observe(running, gone, T + 10)
    ledger.observe(gone, replace(gone, status=replace(gone.status, phase="Succeeded")), T + 12)
    assert sums(ledger, 50) == QosSums(0, 12, 0, 0, 1, 1)


@pytest.mark.parametrize(("phase", "effective", "discarded"), [("Succeeded", 12, 0), ("Failed", 0, 12)])
def test_how_a_task_ends_says_whether_its_work_counts(phase: str, effective: float, discarded: float) -> None:
    ledger = QosLedger()
    running = bound(pod("a", qosMeasuring="aggregate"), 0)
    ledger.observe(None, running, T)
    ledger.observe(running, replace(running, status=replace(running.status, phase=phase)), T + 12)
    assert sums(ledger, 50) == QosSums(effective, discarded, 0, 0, 1, 1)


def test_a_task_that_would_lose_its_work_counts_as_discarded_on_its_own_behalf() -> None:
    ledger = QosLedger()
    for name in "ab":
        ledger.observe(None, bound(pod(name, qosMeasuring="aggregate"), 0), T)
    assert sums(ledger, 10, "default-a")[:2] == (10, 10)
    assert sums(ledger, 10)[:2] == (20, 0)


def test_a_surge_grows_slots_and_the_owner_says_how_many_there_should_be() -> None:
    ledger = QosLedger()
    owner = (OwnerReference(kind="ReplicaSet", name="rs", uid="o", controller=True),)
    for name in "abc":
        waiting = pod(name)
        ledger.observe(None, replace(waiting, metadata=replace(waiting.metadata, owner_references=owner)), T)
    assert ledger.accounts["web"].replicas == 3
    ledger.set_owner("o", 2)
    assert ledger.accounts["web"].replicas == 2
    ledger.set_owner("o", None)
    assert ledger.accounts["web"].replicas == 3


def test_a_clock_that_goes_back_adds_nothing() -> None:
    ledger = QosLedger()
    ledger.observe(None, pod("a", 100), T)
    assert sums(ledger, 0) == QosSums(0, 0, 0, 0, 1, 0)
    ledger.observe(pod("a", 100), None, T + 50)
    assert sums(ledger, 0) == QosSums(0, 0, 0, 0, 1, 0)


def test_a_pod_deleted_while_it_waits_has_waited() -> None:
    ledger = QosLedger()
    ledger.observe(None, pod("a"), T)
    ledger.observe(pod("a"), None, T + 7)
    assert sums(ledger, 99) == QosSums(0, 0, 7, 0, 1, 0)


def test_pods_without_a_controller_are_grouped_by_their_owner_or_stand_alone() -> None:
    ledger = QosLedger()
    owner = [{"kind": "Job", "name": "j", "uid": "o", "controller": True}]
    for name in "ab":
        ledger.observe(None, make_pod(name, metadata={"ownerReferences": owner}), T)
        ledger.observe(None, make_pod(f"alone-{name}"), T)
    assert {key: account.approach for key, account in ledger.accounts.items()} == {
        "o": "aggregate",
        "default-alone-a": "independent",
        "default-alone-b": "independent",
    }
    ledger.observe(make_pod("alone-a"), None, T)
    assert "default-alone-a" not in ledger.accounts


def lived(approach: str) -> tuple[QosLedger, list[Pod]]:
    """A controller of which two pods are gone; gives the ledger and the pods that are left."""
    ledger = QosLedger()
    first = [bound(pod(name, qosMeasuring=approach), 2, 4) for name in "ab"]
    for each in first:
        ledger.observe(None, each, T + 4)
    ledger.observe(first[0], None, T + 100)
    second = pod("c", 100, qosMeasuring=approach)
    ledger.observe(None, second, T + 100)
    ledger.observe(first[1], None, T + 150)
    third = bound(pod("d", 150, qosMeasuring=approach), 160, 162)
    ledger.observe(None, third, T + 162)
    return ledger, [second, third]


@pytest.mark.parametrize("approach", ["independent", "average", "concurrent", "aggregate"])
def test_a_restart_counts_the_same(approach: str) -> None:
    ledger, left = lived(approach)
    text = write_history(ledger.accounts["web"], T + 200)
    carrier = left[0]
    annotated = replace(carrier, metadata=replace(carrier.metadata, annotations={**carrier.annotations, HISTORY: text}))
    restarted = QosLedger()
    for each in (annotated, left[1]):
        restarted.observe(None, each, T + 300)
    for name in "cd":
        assert sums(restarted, 400, f"default-{name}") == pytest.approx(sums(ledger, 400, f"default-{name}"), abs=0.01)
    assert restarted.metric("default-c", T + 400) == pytest.approx(ledger.metric("default-c", T + 400), abs=0.01)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"at": 1e999, "slots": []}', '{"at": 1, "slots": [[1]]}', '{"at": 0, "slots": [[-1,0,0,0,0,0]]}', "["],
)
def test_a_history_that_cannot_be_read_is_reported_and_ignored(text: str) -> None:
    assert read_history(text) is None
    reports: list[str] = []
    ledger = QosLedger(report=reports.append)
    ledger.observe(None, pod("a", 0.0, **{HISTORY: text}), T)
    assert len(reports) == 1
    assert sums(ledger, 5) == QosSums(0, 0, 5, 0, 1, 0)


def test_pods_of_kube_system_are_not_measured() -> None:
    ledger = QosLedger()
    ledger.observe(None, make_pod("dns", namespace="kube-system"), T)
    assert not ledger.pods
    assert (ledger.metric("kube-system-dns", T), ledger.importance("kube-system-dns")) == (float("-inf"), float("inf"))


def test_the_table_of_slots_is_the_originals() -> None:
    head, *lines = slots_text([]).splitlines()
    assert head == (
        "          CONTROLLER    QOS/SLO  PREEMPTION OVERHEAD     QOS APPROACH        POD PHASE       QOS METRIC"
        "           EFF RUNNING           DIS RUNNING               WAITING               BINDING"
    )
    assert not lines
    ledger = QosLedger(limit=0.05)
    ledger.observe(None, pod("a"), T)
    row = slot_rows(ledger, T + 50)[0]._replace(metric_s=-53.3081, slot=1)
    assert slots_text([row]).splitlines()[1] == (
        "               web-1  0.00/0.80        NaN/0.05               average          Pending         -53.3081"
        "                    0s                    0s                   50s                    0s"
    )


def test_the_table_of_controllers_is_that_of_the_first_version() -> None:
    ledger = QosLedger()
    ledger.observe(None, pod("a"), T)
    row: Any = slot_rows(ledger, T)[0]._replace(
        controller="50_slo_1", qos=0.4364, slo=0.5, ttv_s=-142.541, running_s=493.2, waiting_s=636.4, binding_s=0.591
    )
    assert controllers_text([row]).splitlines() == [
        "          CONTROLLER    QOS/SLO                   TTV               RUNNING               WAITING"
        "               BINDING",
        "            50_slo_1  0.44/0.50            -2m22.541s                 8m13s                10m36s"
        "                 591ms",
    ]


def test_a_controller_whose_pods_are_gone_is_marked_until_it_is_forgotten() -> None:
    ledger, one = QosLedger(), pod("a")
    ledger.observe(None, one, T)
    assert controller_rows(ledger, T + 10)[0].gone_s is None
    assert "gone_s" not in plain(controller_rows(ledger, T + 10)[0])
    ledger.observe(one, None, T + 20)
    (row,) = controller_rows(ledger, T + 50)
    assert (row.controller, row.gone_s, plain(row)["gone_s"]) == ("web", 30.0, 30.0)
    assert controllers_text([row]).splitlines()[1].split()[:2] == ["web", "(gone)"]
    ledger.observe(None, pod("b"), T + 60)
    assert controller_rows(ledger, T + 60)[0].gone_s is None
    ledger.observe(pod("b"), None, T + 70)
    ledger.observe(None, make_pod("c", metadata={"annotations": {"controller": "other"}}), T + 70 + IDLE)
    assert [each.controller for each in controller_rows(ledger, T + 80 + IDLE)] == ["other"]


def test_a_pod_that_stands_for_itself_counts_the_same_whenever_it_is_asked_about() -> None:
    waiting = make_pod("alone", metadata={"creationTimestamp": format_time(T)})
    early, late = QosLedger(), QosLedger()
    versions = [None, waiting, replace(bound(waiting, 10), status=replace(bound(waiting, 10).status, start_time=None))]
    versions.append(bound(waiting, 10, 13))
    for before, after in pairwise(versions):
        for ledger in (early, late):
            ledger.observe(before, after, T + 20)
        early.find(waiting.uid)
        assert early.importance(waiting.uid) == late.importance(waiting.uid) == 0.8
        if after is waiting:
            assert early.metric(waiting.uid, T + 20) == late.metric(waiting.uid, T + 20) == -22.4
    assert sums(early, 50, waiting.uid, waiting.uid) == sums(late, 50, waiting.uid, waiting.uid)
    for ledger in (early, late):
        ledger.observe(versions[-1], None, T + 60)
        assert not ledger.accounts
        assert ledger.makespan(T + 90) == 60
