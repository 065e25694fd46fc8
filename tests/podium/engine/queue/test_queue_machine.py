"""The queue against a model of it, through any story.

The model keeps a flat list of pods and scans it for everything: no index, no heap, no cached lookups. Instead of a
shared list of events it hands each event to every pod in flight. After every step both must agree on where every
pod is, which leaves first, how long each backs off and what is kept for pods in flight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from podium.engine.changes import pod_events
from podium.framework import Action, Event, Interest, QueuedPod, Resource
from podium.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT
from podium.kube import Pod
from tests.podium.engine.queue.queues import NODE_ADD, NODE_LABEL, POD_GONE, ByKey, ByLess, World
from tools.kit.builders import make_pod
from tools.kit.effort import examples

NAMES = [f"p{number}" for number in range(6)]
PLUGINS = ["Fit", "Spread", "Claims", "Silent"]
GATES = ["Claims", "Evicting"]
EVENTS = [NODE_ADD, NODE_LABEL, POD_GONE, Event(Resource.PVC, Action.ADD), Event(Resource.PV, Action.ADD)]


def sometimes(pod: Pod, _before: Any, after: Any) -> bool:
    """A hint whose answer hangs on the pod and on the object, which the stories take to be numbers."""
    number = after if isinstance(after, int) else len(pod.labels)
    return (int(pod.name[1:]) + number) % 2 == 0


HINTS = {
    "Fit": [Interest(Resource.NODE, Action.ADD, sometimes), Interest(Resource.POD, Action.DELETE)],
    "Spread": [
        Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, sometimes),
        Interest(Resource.POD, Action.UPDATE_POD_LABEL, sometimes),
    ],
    "Claims": [Interest(Resource.PVC, Action.ADD), Interest(Resource.POD, Action.UPDATE_POD_TOLERATION)],
    "Evicting": [Interest(Resource.POD, Action.DELETE, lambda _pod, _before, _after: False)],
}

Happening = tuple[Event, Any, Any]


@dataclass(eq=False)
class Modelled:
    pod: Pod
    timestamp: float
    sequence: int
    place: str = ""
    rejections: int = 0
    errors: int = 0
    unschedulable: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: str = ""
    flushed_at: float = 0.0
    shown: list[Happening] = field(default_factory=list)

    @property
    def rejectors(self) -> set[str]:
        return self.unschedulable | self.pending

    @property
    def expiration(self) -> float:
        count = self.errors or self.rejections
        return math.floor(self.timestamp + min(2 ** (count - 1), 10)) if count else -math.inf

    @property
    def order(self) -> tuple[float, ...]:
        return (-self.pod.priority, self.timestamp, self.sequence)

    def after(self, event: Event, before: Any, after: Any) -> str:
        """What an event does: "skip", "later" or "now"."""
        if not self.rejectors:
            return "later"
        if event.wildcard:
            return "later" if after is None or after.uid == self.pod.uid else "skip"
        yes = {
            plugin
            for plugin in self.rejectors
            for interest in HINTS.get(plugin, [])
            if interest.event.covers(event) and (interest.hint is None or interest.hint(self.pod, before, after))
        }
        return "now" if yes & self.pending else "later" if yes else "skip"


class Story(RuleBasedStateMachine):
    sorter: ByLess

    def __init__(self) -> None:
        super().__init__()
        self.world = World(HINTS, sorter=self.sorter)
        self.queue = self.world.queue
        self.waiting: dict[str, Modelled] = {}
        self.flying: dict[str, tuple[QueuedPod, Modelled]] = {}
        self.serial = 0
        self.looked_at = 1000.0

    @property
    def now(self) -> float:
        return self.world.clock.now()

    @initialize(gated=st.sets(st.sampled_from(NAMES), max_size=2))
    def gates(self, gated: set[str]) -> None:
        self.world.gate.holding = {"Claims": gated, "Evicting": set()}

    # The story

    @rule(name=st.sampled_from(NAMES), priority=st.integers(0, 2))
    def add(self, name: str, priority: int) -> None:
        if name in self.flying:
            return
        self.serial += 1
        pod = make_pod(name, priority=priority, metadata={"uid": f"{name}-{self.serial}"})
        fresh = Modelled(pod, self.now, self.serial)
        self.queue.add(pod)
        self.to_active(fresh)

    @rule(
        name=st.sampled_from(NAMES),
        labels=st.integers(0, 2),
        tolerations=st.integers(0, 1),
        priority=st.integers(0, 2),
    )
    def update(self, name: str, labels: int, tolerations: int, priority: int) -> None:
        if name not in self.waiting and name not in self.flying:
            return
        modelled = self.flying[name][1] if name in self.flying else self.waiting[name]
        before = modelled.pod
        after = make_pod(
            name,
            priority=priority,
            labels={f"l{number}": "x" for number in range(labels)},
            metadata={"uid": before.uid},
            spec={"tolerations": [{"operator": "Exists"}] * tolerations},
        )
        self.queue.update(before, after)
        if name in self.flying:
            for event in pod_events(before, after):
                self.show(event, before, after)
            self.flying[name][0].pod = after
            modelled.pod = after
            return
        modelled.pod = after
        if modelled.place == "unschedulable":
            for event in pod_events(before, after):
                self.requeue(modelled, modelled.after(event, before, after))
                if modelled.place != "unschedulable":
                    break

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        modelled = self.waiting.pop(name, None)
        if modelled is not None:
            self.queue.delete(modelled.pod)

    @rule()
    def pop(self) -> None:
        ready = [each for each in self.waiting.values() if each.place == "active"]
        early = [each for each in self.waiting.values() if each.place == "backoff" and each.rejectors]
        expected = min(ready, key=lambda each: each.order, default=None) or min(
            early, key=lambda each: (each.expiration, *each.order), default=None
        )
        assert self.queue.ready == (expected is not None)
        queued = self.queue.pop()
        if expected is None:
            assert queued is None
            return
        assert queued is not None
        assert queued.pod is expected.pod
        del self.waiting[expected.pod.name]
        expected.place, expected.shown = "", []
        self.flying[expected.pod.name] = (queued, expected)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def place(self, data: st.DataObject) -> None:
        queued, _ = self.flying.pop(data.draw(st.sampled_from(sorted(self.flying))))
        self.queue.done(queued.pod.uid)

    @precondition(lambda self: self.flying)
    @rule(
        data=st.data(),
        unschedulable=st.sets(st.sampled_from(PLUGINS), max_size=2),
        pending=st.sets(st.sampled_from(PLUGINS), max_size=1),
    )
    def fail(self, data: st.DataObject, unschedulable: set[str], pending: set[str]) -> None:
        queued, modelled = self.flying.pop(data.draw(st.sampled_from(sorted(self.flying))))
        queued.unschedulable_plugins, queued.pending_plugins = set(unschedulable), set(pending)
        modelled.unschedulable, modelled.pending = set(unschedulable), set(pending)
        assert self.queue.add_unschedulable(queued)
        self.serial += 1
        modelled.timestamp, modelled.sequence, modelled.flushed_at = self.now, self.serial, 0.0
        if modelled.rejectors:
            modelled.rejections, modelled.errors = modelled.rejections + 1, 0
            answers = {modelled.after(*happening) for happening in modelled.shown}
            self.requeue(modelled, "now" if "now" in answers else "later" if "later" in answers else "skip")
        else:
            modelled.errors += 1
            self.requeue(modelled, "later")

    @rule(event=st.sampled_from(EVENTS), number=st.integers(0, 1), above=st.sampled_from([None, None, 0]))
    def happen(self, event: Event, number: int, above: int | None) -> None:
        self.queue.on_event(event, None, number, precheck=None if above is None else lambda pod: pod.priority > above)
        if any(interest.event.covers(event) for interests in HINTS.values() for interest in interests):
            self.deliver(
                [each for each in self.waiting.values() if above is None or each.pod.priority > above],
                event,
                number,
            )

    @rule(name=st.sampled_from(NAMES))
    def activate(self, name: str) -> None:
        modelled = self.flying[name][1] if name in self.flying else self.waiting.get(name)
        pod = make_pod(name) if modelled is None else modelled.pod
        self.queue.activate([pod])
        if name in self.flying:
            self.show(FORCE_ACTIVATE, None, pod)
        elif modelled is not None and modelled.place != "active":
            self.to_active(modelled)

    @rule(gate=st.sampled_from(GATES), name=st.sampled_from(NAMES), held=st.booleans())
    def hold_or_release(self, gate: str, name: str, held: bool) -> None:
        if held:
            self.world.gate.holding[gate].add(name)
        else:
            self.world.gate.holding[gate].discard(name)

    @rule(quarters=st.sampled_from([1, 1, 2, 3, 4, 5, 8, 44, 130, 1204]))
    def wait(self, quarters: int) -> None:
        self.world.clock.advance(quarters / 4)

    @rule()
    def flush_backoff(self) -> None:
        self.queue.flush_backoff()
        self.complete_backoffs()

    @rule()
    def flush_unschedulable(self) -> None:
        self.queue.flush_unschedulable()
        self.wake_forgotten(self.now)

    @rule()
    def tick(self) -> None:
        self.queue.tick()
        self.complete_backoffs()
        look = 1000.0 + 30 * math.floor((self.now - 1000.0) / 30)
        if look > self.looked_at:
            self.looked_at = look
            self.wake_forgotten(look)

    @rule()
    def jump_to_the_next_timer(self) -> None:
        """Nothing moves before the time that was announced, and something does then."""
        self.tick()
        timer = self.queue.next_timer()
        if timer is None:
            assert not any(each.place in ("backoff", "unschedulable") for each in self.waiting.values())
            return
        assert timer > self.now
        entered = len(self.world.counted)
        if timer - self.now > 0.25:
            self.world.clock.advance(timer - self.now - 0.25)
            self.tick()
            assert len(self.world.counted) == entered
        self.world.clock.advance(timer - self.now)
        self.tick()
        assert len(self.world.counted) > entered

    # The model

    def show(self, event: Event, before: Any, after: Any) -> None:
        for _, modelled in self.flying.values():
            modelled.shown.append((event, before, after))

    def deliver(self, pods: list[Modelled], event: Event, after: Any) -> None:
        for modelled in pods:
            heard = any(interest.event.covers(event) for interest in HINTS.get(modelled.gate, []))
            if modelled.place == "unschedulable" and (event.wildcard or heard or not modelled.gate):
                answer = modelled.after(event, None, after)
                if answer != "skip":
                    self.requeue(modelled, answer)
        self.show(event, None, after)

    def complete_backoffs(self) -> None:
        for modelled in self.waiting.values():
            if modelled.place == "backoff" and modelled.expiration < math.floor(self.now):
                modelled.place = "active"

    def wake_forgotten(self, looked_at: float) -> None:
        forgotten = [
            each
            for each in self.waiting.values()
            if each.place == "unschedulable" and looked_at - max(each.timestamp, each.flushed_at) > 300
        ]
        for modelled in forgotten:
            modelled.flushed_at = self.now
        if forgotten:
            self.deliver(forgotten, UNSCHEDULABLE_TIMEOUT, None)

    def requeue(self, modelled: Modelled, answer: str) -> None:
        if answer == "skip":
            self.waiting[modelled.pod.name] = modelled
            modelled.place = "unschedulable"
        elif answer == "later" and modelled.expiration >= math.floor(self.now):
            self.pass_gates(modelled)
            self.waiting[modelled.pod.name] = modelled
            modelled.place = "unschedulable" if modelled.gate else "backoff"
        else:
            self.to_active(modelled)

    def to_active(self, modelled: Modelled) -> None:
        if modelled.place != "backoff":
            self.pass_gates(modelled)
        known = self.waiting.get(modelled.pod.name)
        if modelled.gate and known is not None and known.place != "unschedulable":
            return
        self.waiting[modelled.pod.name] = modelled
        modelled.place = "unschedulable" if modelled.gate else "active"

    def pass_gates(self, modelled: Modelled) -> None:
        holding = self.world.gate.holding
        held = [gate for gate in (modelled.gate, *holding) if modelled.pod.name in holding.get(gate, ())]
        modelled.gate = held[0] if held else ""
        modelled.unschedulable |= set(held[:1])

    # What must hold

    @invariant()
    def every_pod_is_in_its_place_once(self) -> None:
        seen = [(queued.pod.name, queued.queue) for queued in self.queue]
        assert len(seen) == len(set(seen)) == len(self.queue)
        assert dict(seen) == {name: modelled.place for name, modelled in self.waiting.items()}
        gated = sum(modelled.place == "unschedulable" and bool(modelled.gate) for modelled in self.waiting.values())
        places = [modelled.place for modelled in self.waiting.values()]
        assert self.queue.pending() == (
            places.count("active"),
            places.count("backoff"),
            places.count("unschedulable") - gated,
            gated,
        )

    @invariant()
    def records_agree(self) -> None:
        for name, modelled in self.waiting.items():
            queued = self.queue.get(f"default/{name}")
            assert queued is not None
            assert queued.pod is modelled.pod
            assert (queued.timestamp, queued.gating_plugin) == (modelled.timestamp, modelled.gate)
            assert queued.unschedulable_plugins == modelled.unschedulable
            if modelled.place == "backoff":
                assert queued.backoff_expiration == modelled.expiration

    @invariant()
    def pods_are_in_the_order_they_would_be_tried(self) -> None:
        active = [each for each in self.waiting.values() if each.place == "active"]
        early = [each for each in self.waiting.values() if each.place == "backoff" and each.rejectors]
        active.sort(key=lambda each: each.order)
        early.sort(key=lambda each: (each.expiration, *each.order))
        shown = [queued.pod for queued in self.queue]
        assert shown[: len(active) + len(early)] == [each.pod for each in active + early]

    @invariant()
    def only_events_some_pod_in_flight_must_see_are_kept(self) -> None:
        longest = max((len(modelled.shown) for _, modelled in self.flying.values()), default=0)
        assert len(self.queue.in_flight.events()) == longest
        assert len(self.queue.in_flight) == len(self.flying)


class ByKeyStory(Story):
    sorter = ByKey()


class ByLessStory(Story):
    sorter = ByLess()


EFFORT = settings(max_examples=examples(60), stateful_step_count=60, deadline=None)

TestQueueWithASortKey = ByKeyStory.TestCase
TestQueueWithASortKey.settings = EFFORT
TestQueueWithAComparison = ByLessStory.TestCase
TestQueueWithAComparison.settings = EFFORT
