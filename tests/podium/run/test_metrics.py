"""`/metrics`: kube-scheduler's families with the numbers it would show, and Podium's own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from podium.client import ApiResource, Client, Reflector, load_access
from podium.cluster import NodeInfo
from podium.framework import Cycle, ManualClock, Plugin, Status
from podium.kube import Node
from podium.kube.versions import KNOWN, VersionRules
from podium.run import engine_metrics as observing
from podium.run.metrics import Metrics
from podium.serving.families import Histograms
from tests.podium.engine.schedulers import World
from tests.podium.engine.test_binding import Hold, held
from tests.podium.run.exposition import Family, families_of
from tools.kit.builders import make_node, make_pod
from tools.kit.pod_group_worlds import PodGroupWorld, group_members, pod_group
from tools.testbed import ControlPlane

SMALL, BIG = {"cpu": "100m"}, {"cpu": 10}
FIT = "NodeResourcesFit"


def watched(*plugins: type[Plugin] | str, **options: Any) -> tuple[World, Metrics]:
    """A scheduler and its metrics; every look at the stopwatch moves it by a millisecond."""
    ticks = count()
    clock = ManualClock(1_000_000.0)
    metrics = Metrics(clock, now=lambda: next(ticks) / 1000, rng=random.Random(1))
    world = World(*plugins, timer=metrics.timer, clock=clock, **options)
    metrics.attach(world.scheduler, lambda: 0)
    return world, metrics


def shown(metrics: Metrics) -> dict[str, Family]:
    return families_of(metrics.render().decode())


# The numbers


def test_attempts_are_counted_by_how_they_ended() -> None:
    world, metrics = watched(FIT, nodes=[make_node("n1", cpu=1), make_node("n2", cpu=1)])
    world.attempt(make_pod("fits", requests=SMALL), make_pod("big", requests=BIG))
    families = shown(metrics)
    attempts = families["scheduler_schedule_attempts_total"]
    assert attempts.value(result="scheduled") == attempts.value(result="unschedulable") == 1
    assert families["scheduler_scheduling_attempt_duration_seconds"].value() == 2
    assert families["scheduler_scheduling_algorithm_duration_seconds"].value() == 2
    assert families["scheduler_pod_scheduling_attempts"].value() == 1


def test_a_binding_that_fails_was_one_decision() -> None:
    world, metrics = watched(FIT, nodes=[make_node()])
    world.bind_answer = Status.error("refused")
    world.attempt(make_pod())
    families = shown(metrics)
    assert families["scheduler_schedule_attempts_total"].value(result="error") == 1
    assert families["scheduler_scheduling_algorithm_duration_seconds"].value() == 1


def test_the_wait_of_a_pod_counts_from_when_it_could_be_tried_and_not_from_when_it_was_gated() -> None:
    world, metrics = watched(FIT, "SchedulingGates", nodes=[make_node()])
    gated = make_pod(spec={"schedulingGates": [{"name": "later"}]})
    world.add(gated)
    world.clock.advance(100)
    world.add(make_pod(metadata={"resourceVersion": "2"}))
    world.clock.advance(3)
    world.try_next()
    waited = shown(metrics)["scheduler_pod_scheduling_sli_duration_seconds"]
    assert waited.sums == {frozenset({("attempts", "1")}): 3.0}


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (400, "15+")])
def test_many_attempts_share_one_label(attempts: int, label: str) -> None:
    world, metrics = watched(FIT, nodes=[make_node()])
    world.add(make_pod())
    queued = world.queued()
    queued.attempts = attempts - 1
    world.try_next()
    families = shown(metrics)
    assert families["scheduler_pod_scheduling_sli_duration_seconds"].value(attempts=label) == 1
    assert sum(families["scheduler_pod_scheduling_attempts"].sums.values()) == attempts


def test_a_pod_brought_back_by_time_alone_is_counted_when_it_is_bound() -> None:
    world, metrics = watched(FIT, nodes=[make_node()])
    world.attempt(make_pod(requests=BIG))
    world.queued().pod = make_pod(requests=SMALL)  # something changed that nobody heard of
    world.cluster.objects.pending_pods.set("default/p1", make_pod(requests=SMALL))
    world.clock.advance(400)
    world.scheduler.tick()
    world.try_next()
    assert shown(metrics)["scheduler_pod_scheduled_after_flush_total"].value() == 1


def test_waits_at_permit_are_told_by_their_end() -> None:
    world, metrics = watched(Hold, FIT, nodes=[make_node()])
    world.attempt(held(seconds="10"))
    world.clock.advance(10)
    world.scheduler.tick()
    waits = shown(metrics)["scheduler_permit_wait_duration_seconds"]
    assert waits.sums == {frozenset({("result", "Unschedulable")}): 10.0}


def test_evictions_are_counted_and_timed_until_they_are_done() -> None:
    world, metrics = watched(FIT, "DefaultPreemption", nodes=[make_node(cpu=1)])
    world.slow_evictions = True
    world.attempt(make_pod("low", requests={"cpu": 1}), make_pod("high", requests={"cpu": 1}, priority=9))
    families = shown(metrics)
    assert families["scheduler_preemption_attempts_total"].value() == 1
    assert sum(families["scheduler_preemption_victims"].sums.values()) == 1
    assert "scheduler_preemption_goroutines_execution_total" not in families
    world.evictions[0]("refused")
    done = shown(metrics)["scheduler_preemption_goroutines_execution_total"]
    assert done.value(result="error") == done.value() == 1


def test_attempts_on_pod_groups_are_counted_by_how_they_ended() -> None:
    ticks = count()
    clock = ManualClock(1_000_000.0)
    metrics = Metrics(clock, now=lambda: next(ticks) / 1000, rng=random.Random(1))
    world = PodGroupWorld(nodes=[make_node("n1", cpu=2)], timer=metrics.timer, clock=clock)
    metrics.attach(world.scheduler, lambda: 0)
    assert "scheduler_podgroup_schedule_attempts_total" not in shown(metrics)
    world.slow_evictions = True
    for name, number, priority in (("fits", 2, 0), ("no-room", 2, 0), ("evicts", 2, 100)):
        world.add(pod_group(name, minimum=number, priority=priority))
        world.add(*group_members(number, name, priority=priority))
        world.try_next()
    families = shown(metrics)
    attempts = families["scheduler_podgroup_schedule_attempts_total"]
    for result in ("scheduled", "unschedulable", "waiting_on_preemption"):
        assert attempts.value(result=result, profile="default-scheduler") == 1, result
    assert families["scheduler_podgroup_scheduling_attempt_duration_seconds"].value() == 3
    assert families["scheduler_podgroup_scheduling_algorithm_duration_seconds"].value() == 3


def test_gauges_tell_what_queue_and_cluster_hold_now() -> None:
    world, metrics = watched(FIT, "SchedulingGates", nodes=[make_node("n1"), make_node("n2")])
    world.attempt(make_pod("bound"), make_pod("big", requests=BIG))
    world.add(make_pod("gated", spec={"schedulingGates": [{"name": "later"}]}), make_pod("waiting"))
    families = shown(metrics)
    pending = families["scheduler_pending_pods"]
    assert {place: pending.value(queue=place) for place in ("active", "backoff", "unschedulable", "gated")} == {
        "active": 1, "backoff": 0, "unschedulable": 1, "gated": 1,
    }  # fmt: skip
    size = families["scheduler_cache_size"]
    assert (size.value(type="nodes"), size.value(type="pods"), size.value(type="assumed_pods")) == (2, 1, 1)
    rejected = families["scheduler_unschedulable_pods"]
    assert rejected.value(plugin=FIT) == rejected.value(plugin="SchedulingGates") == 1
    assert families["scheduler_inflight_events"].value(event="PodPopped") == 0


def test_from_1_37_on_entities_are_counted_where_they_change_their_queue() -> None:
    world, metrics = watched(FIT, "SchedulingGates", nodes=[make_node("n1", cpu=1)])
    world.attempt(make_pod("big", requests=BIG))
    gated = make_pod("gated", spec={"schedulingGates": [{"name": "later"}]})
    world.add(gated)
    families = shown(metrics)
    waiting = families["scheduler_queued_entities"]
    assert waiting.value(queue="unschedulable", type="pod") == waiting.value(queue="gated", type="pod") == 1
    pending = families["scheduler_pending_pods"]
    assert pending.value(queue="incomplete") == pending.value(queue="pending") == 0
    assert len(pending.values) == 6
    incoming = families["scheduler_queue_incoming_entities_total"]
    assert incoming.values.keys() == {
        labels | {("type", "pod")} for labels in families["scheduler_queue_incoming_pods_total"].values
    }


def test_a_pod_group_is_one_entity_and_its_members_are_pods() -> None:
    clock = ManualClock(1_000_000.0)
    metrics = Metrics(clock, now=lambda: 0.0, rng=random.Random(1))
    world = PodGroupWorld(nodes=[make_node("n1", cpu=1)], timer=metrics.timer, clock=clock)
    metrics.attach(world.scheduler, lambda: 0)
    world.add(pod_group("waits", minimum=2), *group_members(2, "waits"), *group_members(3, "unknown"))
    world.try_next()
    families = shown(metrics)
    pending = families["scheduler_pending_pods"]
    assert (pending.value(queue="backoff"), pending.value(queue="incomplete")) == (2, 3)
    waiting = families["scheduler_queued_entities"]
    assert (waiting.value(queue="backoff", type="podgroup"), waiting.value(queue="backoff", type="pod")) == (1, 0)
    failed = {"queue": "backoff", "event": "ScheduleAttemptFailure"}
    assert families["scheduler_queue_incoming_pods_total"].value(**failed) == 2
    assert families["scheduler_queue_incoming_entities_total"].value(**failed, type="podgroup") == 1


def test_a_gated_pod_that_stays_gated_enters_as_a_pod_but_not_as_an_entity() -> None:
    _world, metrics = watched(FIT, nodes=[])
    metrics.timer.entered("unschedulable", "PodAdd")
    metrics.timer.stayed("unschedulable", "NodeAdd")
    assert metrics.timer.entities_entered() == {("unschedulable", "PodAdd", "pod"): 1}
    assert shown(metrics)["scheduler_queue_incoming_pods_total"].value() == 2


@pytest.mark.parametrize("rules", KNOWN.values(), ids=str)
def test_the_metric_of_created_claims_has_the_name_of_its_minor(rules: VersionRules) -> None:
    world, metrics = World(FIT), Metrics(ManualClock(0.0), now=lambda: 0.0)
    world.scheduler.rules = rules
    metrics.attach(world.scheduler)
    metrics.claims.created(success=True)
    families = shown(metrics)
    old, new = "scheduler_resourceclaim_creates_total", "dynamic_resource_allocation_resourceclaim_creates_total"
    since_1_37 = rules is KNOWN["1.37"]
    assert (old in families, new in families) == (not since_1_37, since_1_37)
    assert ("scheduler_queued_entities" in families) is since_1_37
    assert len(families["scheduler_pending_pods"].values) == (6 if since_1_37 else 4)
    if since_1_37:
        assert families[new].value(status="success", admin_access="false", owner_api_group="", owner_api_kind="Pod")


def test_a_rejected_pod_counts_for_its_plugins_until_it_is_tried_again() -> None:
    world, metrics = watched(FIT, nodes=[make_node("n1", cpu=1)])
    world.attempt(make_pod("a", requests=BIG), make_pod("b", requests=BIG), make_pod("c", requests={"cpu": 30}))

    def rejected() -> tuple[float, float]:
        families = shown(metrics)
        return families["scheduler_unschedulable_pods"].value(plugin=FIT), families["scheduler_pending_pods"].value(
            queue="backoff"
        )

    assert rejected() == (3, 0)
    world.add(make_node("n2", cpu=10))
    assert rejected() == (3, 2)
    world.try_next()
    assert rejected() == (2, 1)


def test_events_kept_for_pods_in_flight_are_counted_by_kind() -> None:
    world, metrics = watched(FIT, nodes=[make_node("n1")])
    world.add(make_pod())
    world.queue.pop()
    world.add(make_node("n2"), make_node("n3"))
    kept = shown(metrics)["scheduler_inflight_events"]
    assert (kept.value(event="PodPopped"), kept.value(event="NodeAdd")) == (1, 2)


def test_a_plugin_is_evaluated_once_for_a_decision_unless_it_is_skipped() -> None:
    world, metrics = watched(FIT, "NodePorts", nodes=[make_node("n1"), make_node("n2"), make_node("n3")])
    world.attempt(*(make_pod(f"p{number}", requests=SMALL) for number in range(5)))
    evaluated = shown(metrics)["scheduler_plugin_evaluation_total"]
    assert evaluated.value(plugin=FIT, extension_point="Filter") == 5
    assert evaluated.value(plugin=FIT, extension_point="Score") == 5
    assert evaluated.value(plugin="NodePorts") == 0


def test_hints_are_timed_by_what_they_said() -> None:
    world, metrics = watched(FIT, nodes=[make_node(cpu=1)])
    world.attempt(make_pod(requests=BIG))
    world.add(make_node("n2", cpu=2), make_node("n3", cpu=20))
    hints = shown(metrics)["scheduler_queueing_hint_execution_duration_seconds"]
    assert hints.value(plugin=FIT, event="NodeAdd", hint="QueueSkip") == 1
    assert hints.value(plugin=FIT, event="NodeAdd", hint="Queue") == 1


def test_requests_to_the_api_server_are_counted_by_code_and_timed_by_verb() -> None:
    metrics = Metrics(ManualClock(), now=lambda: 0.0)
    metrics.on_request("POST", "server:6443", "201", 0.3)
    metrics.on_request("POST", "server:6443", "<error>", 0.1)
    families = shown(metrics)
    assert families["rest_client_requests_total"].value(code="201", method="POST", host="server:6443") == 1
    assert families["rest_client_requests_total"].value(code="<error>") == 1
    assert sum(families["rest_client_request_duration_seconds"].sums.values()) == pytest.approx(0.4)


def test_who_leads_and_whatever_else_is_given_is_shown() -> None:
    metrics = Metrics(ManualClock(), now=lambda: 0.0)
    leading = True
    metrics.leads("kube-scheduler", lambda: leading)
    metrics.counter("podium_events_dropped_total", "Events that were not written.", lambda: 7)
    families = shown(metrics)
    assert families["leader_election_master_status"].value(name="kube-scheduler") == 1
    assert families["podium_events_dropped_total"].value() == 7
    leading = False
    assert shown(metrics)["leader_election_master_status"].value(name="kube-scheduler") == 0


def test_watches_are_followed(empty_control_plane: ControlPlane) -> None:
    empty_control_plane.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    metrics = Metrics(ManualClock(), now=lambda: 0.0)

    async def main() -> None:
        async with Client(load_access(str(empty_control_plane.kubeconfig_path))) as client:
            reflectors = [
                Reflector(client, resource, on_set=print, on_delete=print, report=print, rng=random.Random(0))
                for resource in (ApiResource("/api/v1/nodes", Node), ApiResource("/apis/nowhere/v1/things"))
            ]
            metrics.follow(reflectors)
            tasks = [asyncio.create_task(each.run()) for each in reflectors]
            while not (reflectors[0].watches and reflectors[1].problem):
                await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    families = shown(metrics)
    assert families["podium_lists_total"].value(resource="nodes") == 1
    assert families["podium_watch_restarts_total"].value(resource="nodes") == 0
    assert families["podium_watched_objects"].value(resource="nodes") == 1
    assert families["podium_watch_trouble"].value(resource="nodes") == 0
    assert families["podium_watch_trouble"].value(resource="things.nowhere") == 1


def test_observations_do_not_gather_without_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "FOLDED_AFTER", 10)
    world, metrics = watched(FIT, nodes=[make_node()])
    for number in range(40):
        world.attempt(make_pod(f"p{number}"))
    (algorithm,) = (
        each for each in metrics.timer.families if each.name == "scheduler_scheduling_algorithm_duration_seconds"
    )
    assert isinstance(algorithm, Histograms)
    assert len(algorithm.of()._gathered) < 10
    assert shown(metrics)[algorithm.name].value() == 40


# Plugins one by one


def test_in_sampled_attempts_every_plugin_is_timed_at_every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "SAMPLED", 1.0)
    world, metrics = watched(FIT, "NodePorts", "DefaultPreemption", nodes=[make_node("n1"), make_node("n2")])
    world.clock.advance(1)
    world.attempt(make_pod(requests=SMALL))
    timed = shown(metrics)["scheduler_plugin_execution_duration_seconds"]
    assert timed.value(plugin=FIT, extension_point="PreFilter", status="Success") == 1
    assert timed.value(plugin=FIT, extension_point="Filter", status="Success") == 1
    assert timed.value(plugin=FIT, extension_point="Score", status="Success") == 1
    assert timed.value(plugin="NodePorts", extension_point="PreFilter", status="Skip") == 1
    assert timed.value(plugin="NodePorts", extension_point="Filter") == 0
    assert timed.value(plugin="DefaultBinder", extension_point="Bind", status="Success") == 1


def test_what_a_plugin_calls_of_its_own_is_part_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Callable[..., bool]] = []

    class Inward(Plugin):
        def pre_filter(self, cycle: Cycle) -> None:
            held.append(self.filter_node)
            self.filter_node(cycle, None)

        def filter_node(self, _cycle: Cycle, _node: NodeInfo | None) -> bool:
            return True

    monkeypatch.setattr(observing, "SAMPLED", 1.0)
    world, metrics = watched(Inward, nodes=[make_node("n1"), make_node("n2")])
    world.attempt(make_pod())
    timed = shown(metrics)["scheduler_plugin_execution_duration_seconds"]
    assert timed.value(plugin="Inward", extension_point="PreFilter") == 1
    assert timed.value(plugin="Inward", extension_point="Filter") == 2, "one for each node"
    held[0](None, None)
    assert shown(metrics)["scheduler_plugin_execution_duration_seconds"].value() == timed.value()


def test_after_a_sampled_attempt_plugins_are_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    world, metrics = watched(FIT, nodes=[make_node("n1"), make_node("n2")])
    plugin = world.scheduler.profiles["default-scheduler"].plugins[FIT]
    before = dict(vars(plugin))
    monkeypatch.setattr(observing, "SAMPLED", 1.0)
    world.attempt(make_pod("p1", requests=BIG), make_pod("p2", requests=SMALL))
    assert vars(plugin).keys() == before.keys()
    monkeypatch.setattr(observing, "SAMPLED", 0.0)
    counted = shown(metrics)["scheduler_plugin_execution_duration_seconds"].value()
    world.attempt(make_pod("p3", requests=SMALL))
    assert shown(metrics)["scheduler_plugin_execution_duration_seconds"].value() == counted > 0
