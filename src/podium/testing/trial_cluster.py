"""Runs the scheduler on a cluster in memory, one step at a time, so that a test can look at each.

Time stands still unless the test moves it. What a pod's binding awaits is awaited on the spot. An exception of a
plugin, or an answer that breaks the contract, comes out of the call in which it happened.

Also schedules as the live scheduler does, and records what each decision was made of.

Where a plugin declares what its answers depend on, they are cached in production. Each decision is then made twice,
afresh and from the cache, and both must agree: a declaration that says too little shows itself in the test.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config import SchedulerConfig, load_config
from podium.config.defaults import beside_defaults
from podium.engine.batching import Batch
from podium.engine.decide import NodeSearch, decide
from podium.engine.explain import NodeAnswer, answers_of
from podium.engine.intake import on_node
from podium.engine.scheduler import Scheduler
from podium.framework.clock import Clock, ManualClock
from podium.framework.cycle import Cycle
from podium.framework.depends_on import NodePart
from podium.framework.diagnosis import Nomination
from podium.framework.handle import Driver, Effect, Preemptor
from podium.framework.plugin import Plugin
from podium.framework.plugin_failures import PluginFailure
from podium.framework.pod_outcomes import GivenOutcomes
from podium.framework.profile import ProfileRuntime
from podium.framework.status import PluginError
from podium.kube import CustomObject, KubeObject, Pod, PriorityClass, decode_documents
from podium.kube.admission import as_admitted
from podium.load.readings import GivenLoad
from podium.plugins import PluginRegistry, load_registry, register
from podium.testing.memory_writer import MemoryWriter
from podium.testing.trial_outcome import TrialOutcome, TrialState

START = 1_800_000_000.0
"""When trials begin, in seconds since 1970."""

Objects = str | Path | Iterable[Any]
"""YAML, a file of it, or objects."""
P = TypeVar("P", bound=Plugin)


class TrialCluster:
    """A cluster on which plugins are tried; they stand beside kube-scheduler's own, as a profile would have them.

    `args` and `weight` are for one plugin, spelt as a configuration does; `config` is a whole one instead (YAML, a path
    or a dictionary). `load` and `pod_outcomes` are what `handle` gives plugins: set their readings by hand.
    """

    def __init__(
        self,
        *plugins: type[Plugin] | str,
        objects: Objects = (),
        args: Mapping[str, Any] | None = None,
        weight: int | None = None,
        config: str | Path | Mapping[str, Any] | None = None,
        seed: int = 0,
        start: float = START,
    ) -> None:
        settings = make_config(plugins, args, weight, config)
        self.clock = ManualClock(start)
        self.load = GivenLoad()
        self.pod_outcomes = GivenOutcomes()
        self.outcomes: dict[str, TrialOutcome] = {}
        """The last outcome of each pod that was tried."""
        self._api = TrialApi(self.clock)
        self._reports: list[str] = []
        self._failures: list[PluginFailure] = []
        self._pods: dict[str, Pod] = {}
        self._classes: list[PriorityClass] = []
        self._under_way: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduler = RecordingScheduler(
            settings.config,
            settings.registry,
            Driver(
                clock=self.clock,
                writer=self._api,
                rng=random.Random(seed),
                launch=self._launch,
                load=self.load,
                pod_outcomes=self.pod_outcomes,
                report=self._reports.append,
                on_failure=self._failures.append,
            ),
            self._api,
        )
        self._scheduler.record(settings.tried)
        self._api.intake = self._scheduler.intake
        self.add(objects)

    # The cluster

    @property
    def state(self) -> Cluster:
        """The state as plugins see it: `handle.cluster`."""
        return self._scheduler.cluster

    @property
    def bound(self) -> dict[str, str]:
        """The node of each pod that the scheduler bound, by "namespace/name"."""
        return dict(self._api.nodes)

    def plugin(self, kind: type[P] | str) -> P:
        """The plugin itself, as the first profile runs it."""
        runtime = next(iter(self._scheduler.profiles.values()))
        return cast("P", runtime.plugins[kind if isinstance(kind, str) else kind.name])

    def runtime_of(self, kind: type[Plugin] | str) -> ProfileRuntime:
        """The first profile with this plugin alone at work."""
        runtime = next(iter(self._scheduler.profiles.values()))
        return runtime.only({kind if isinstance(kind, str) else kind.name})

    def add(self, objects: Objects) -> None:
        """Let objects come, or change; pods without a node wait in the queue.

        Pods from manifests are completed as the API server does: requests from limits, priorities from classes.
        """
        given = list(_objects(objects))
        self._classes += [each for each in given if isinstance(each, PriorityClass)]
        for each in as_admitted(given, self._classes, "the trial"):
            if isinstance(each, CustomObject):
                self._scheduler.intake.set_custom(each.resource, each.key, each.data)
            else:
                found = _with_uid(each) if isinstance(each, Pod) else each
                if isinstance(found, Pod):
                    self._pods[found.key] = found
                self._scheduler.intake.set(found)
        self._raise_failures()

    def delete(self, *objects: Any) -> None:
        """Let objects go; a pod may be given by its name."""
        for each in objects:
            if isinstance(each, CustomObject):
                self._scheduler.intake.set_custom(each.resource, each.key, None)
            else:
                self._scheduler.intake.delete(self._pods[_key(each)] if isinstance(each, str | Pod) else each)
                if isinstance(each, str | Pod):
                    self._api.nodes.pop(_key(each), None)
        self._raise_failures()

    def set_custom(self, resource: str, key: str, data: Mapping[str, Any] | None) -> None:
        """Let a custom resource ("plural.group") of any kind come, change, or (None) go; `key` is "namespace/name"."""
        self._scheduler.intake.set_custom(resource, key, None if data is None else dict(data))
        self._raise_failures()

    # Decisions

    def place(self, pod: Pod | str) -> TrialOutcome:
        """Try a pod, given or by its name, even if it was rejected before; pods that sort before it are tried first."""
        if isinstance(pod, Pod):
            self.add([pod])
        key = _key(pod)
        if key not in self._pods:
            raise LookupError(f"pod {key} is not in the cluster; add it, or give the pod itself")
        self._scheduler.queue.activate([self._pods[key]])  # one that was rejected is tried again
        while (queued := self._scheduler.queue.get(key)) is not None and queued.queue == "active":
            if self._try_next() == key:
                break
        return self.outcome(key)

    def run(self) -> list[TrialOutcome]:
        """Try every pod that is ready, in the order of the queue."""
        keys: dict[str, None] = {}
        while (key := self._try_next()) is not None:
            keys[key] = None
        return [self.outcome(key) for key in keys]

    def advance(self, seconds: float) -> list[TrialOutcome]:
        """Let time pass: waits at Permit end, backoffs end, and pods that come back are tried; those that were."""
        end = self.clock.now() + seconds
        keys: dict[str, None] = {}
        while True:
            due = self._scheduler.next_timer()
            last = due is None or due > end
            self.clock.advance(max(0.0, (end if due is None or last else due) - self.clock.now()))
            self._scheduler.tick()
            self._settle()
            keys |= {outcome.pod: None for outcome in self.run()}
            if last:
                return [self.outcome(key) for key in keys]

    def outcome(self, pod: Pod | str) -> TrialOutcome:
        """What is known of a pod now."""
        key = _key(pod)
        found = self._pods.get(key)
        waiting = None if found is None else self._scheduler.waiting.get(found.uid)
        reason, message, nominated = self._api.failures.get(key, ("", "", None))
        queued = self._scheduler.queue.get(key)
        node = self._api.nodes.get(key)
        if node is not None:
            state, message = TrialState.BOUND, ""
        elif waiting is not None:
            state, node, message = TrialState.WAITING, waiting.node_name, ""
        elif queued is not None and queued.gated:
            state, message = TrialState.GATED, self._gate(queued.pod)
        elif reason:
            state = TrialState.UNSCHEDULABLE if reason == "Unschedulable" else TrialState.ERROR
        else:
            state = TrialState.QUEUED
        now = self.clock.now()
        outcome = self.outcomes[key] = TrialOutcome(
            pod=key,
            state=state,
            node=node,
            message=message,
            nodes={answer.name: answer for answer in self._scheduler.answers.get(key, ())},
            waits={} if waiting is None else {name: until - now for name, until in waiting.pending.items()},
            nominated=nominated,
            evicted=tuple(self._api.gave_way.get(key, ())),
            annotations=dict(self._api.annotated.get(key, {})),
            reports=tuple(self._reports),
        )
        return outcome

    def _gate(self, pod: Pod) -> str:
        status = self._scheduler.profiles[pod.spec.scheduler_name].run_pre_enqueue(pod, "")
        return "" if status is None else status.message

    def _try_next(self) -> str | None:
        self._scheduler.problem = None
        queued = self._scheduler.schedule_one()
        self._settle()
        if self._scheduler.problem is not None and not self._failures:
            raise self._scheduler.problem
        self._raise_failures()
        return None if queued is None else queued.pod.key

    def _settle(self) -> None:
        while self._api.deliver():
            pass

    def _raise_failures(self) -> None:
        failures, self._failures[:] = list(self._failures), []
        if failures:
            raise PluginError(str(failures[0])) from failures[0].error

    # What a binding awaits

    def _launch(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        if self._loop is not None:
            task = self._loop.create_task(work)
            self._under_way.append(task)
            return task
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            try:
                runner.run(self._until_all_end(work))
            finally:
                self._loop = None
        return None

    async def _until_all_end(self, work: Coroutine[Any, Any, None]) -> None:
        await work
        while self._under_way:
            await self._under_way.pop(0)


def _objects(given: Objects) -> Iterable[Any]:
    if isinstance(given, Path):
        return decode_documents(given.read_text(encoding="utf-8"), str(given)).objects
    if isinstance(given, str):
        return decode_documents(given, "the objects of the trial").objects
    return given


def _with_uid(pod: Pod) -> Pod:
    """Pods go by uid; one that no API server has seen goes by its name."""
    return pod if pod.uid else replace(pod, metadata=replace(pod.metadata, uid=pod.key))


def _key(pod: Pod | KubeObject | str) -> str:
    if isinstance(pod, str):
        return pod if "/" in pod else f"default/{pod}"
    return cast("Pod", pod).key


class TrialApi(MemoryWriter):
    """The writer and listener of the engine. What it writes comes back as a change, after the cycle."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.nodes: dict[str, str] = {}
        """By pod: the node that it is bound to."""
        self.gave_way: dict[str, list[str]] = {}
        """By pod: those that gave way to it."""
        self.failures: dict[str, tuple[str, str, str | None]] = {}
        """By pod: the reason, the message, and the node that it is nominated to."""

    def object_changes(self, change: Callable[[], None]) -> None:
        change()  # a plugin that is answered at once looks for its claim next

    def bind(self, pod: Pod, node_name: str) -> Effect:
        return None  # a plugin's own Bind may not come here; `scheduled` hears of both

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self.gave_way.setdefault(preemptor.key, []).extend(victim.key for victim in victims)
        for victim in victims:
            self.nodes.pop(victim.key, None)
        super().evict(victims, preemptor, node_name, done)

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        self.gave_way.setdefault(preemptor.key, []).append(victim.key)

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.failures.pop(pod.key, None)
        self.nodes[pod.key] = node_name
        annotations = {**pod.metadata.annotations, **self.annotated.get(pod.key, {})}
        shown = replace(pod, metadata=replace(pod.metadata, annotations=annotations))
        self.change(lambda: self._show(on_node(shown, node_name)))

    def _show(self, pod: Pod) -> None:
        assert self.intake is not None, "the engine is made before it decides"
        self.intake.set(pod)

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        self.failures[pod.key] = (reason, message, nomination.node_name or None if nomination else None)


class TrialConfig(NamedTuple):
    """What a scheduler needs, and the plugins that the test is about."""

    config: SchedulerConfig
    registry: PluginRegistry
    tried: list[type[Plugin]]


def make_config(
    plugins: Sequence[type[Plugin] | str],
    args: Mapping[str, Any] | None,
    weight: int | None,
    config: str | Path | Mapping[str, Any] | None,
) -> TrialConfig:
    """Raises ConfigError for arguments or a configuration that `podium run` would refuse."""
    registry = load_registry()
    for each in plugins:
        if not isinstance(each, str):
            register(registry, each, f"plugin {each.__qualname__}")
    tried = [registry[each] if isinstance(each, str) else each for each in plugins]
    if config is not None and (args is not None or weight is not None):
        raise ValueError("args and weight belong into the configuration where one is given")
    if config is None:
        text, source = json.dumps(beside_defaults(tried, args, weight)), "the trial"
    elif isinstance(config, Mapping):
        text, source = json.dumps(config), "config"
    elif isinstance(config, Path):
        text, source = config.read_text(encoding="utf-8"), str(config)
    else:
        text, source = config, "config"
    return TrialConfig(load_config(text, source, registry).config, registry, tried)


class DependsOnError(AssertionError):
    """A cached answer differs from a fresh one: a plugin declares too little."""


class RecordingScheduler(Scheduler):
    """A scheduler that keeps the answers about each node, by pod."""

    def record(self, tried: Sequence[type[Plugin]]) -> None:
        """To be called before the first pod; `tried` are the plugins of the test."""
        self.answers: dict[str, list[NodeAnswer]] = {}
        self.problem: Exception | None = None
        """What the last decision failed with, where the fault is a plugin's."""
        self._cached = [plugin.name for plugin in tried if _is_cached(plugin)]

    def search(self, runtime: ProfileRuntime, cycle: Cycle, batch: Batch | None = None) -> int | NodeSearch:
        """Each pod is decided by itself, whatever the scores of the one before."""
        start = self.sampling.next_start
        cycle.forget_notes()
        try:
            decision = decide(runtime, cycle, self.sampling)
        except PluginError as error:
            self.problem = error
            raise
        self.answers[cycle.pod.key] = answers_of(self.cluster, decision)
        if self._cached:
            self._compare(runtime, cycle, decision.row, start)
        return decision.search if decision.row is None else decision.row

    def _compare(self, runtime: ProfileRuntime, cycle: Cycle, row: int | None, start: int) -> None:
        after, self.sampling.next_start = self.sampling.next_start, start
        known = self.answer_cache.decide(runtime, Cycle(cycle.pod, self.cluster), self.sampling)
        self.sampling.next_start = after
        if known is None:
            return
        cached = known if isinstance(known, int) else None
        if cached != row:
            names = self.cluster.names
            fresh, cached_one = ("nowhere" if each is None else f"to {names[each]}" for each in (row, cached))
            self.problem = DependsOnError(
                f"{cycle.pod.key} goes {fresh}, but {cached_one} by cached answers: depends_on or answer_key of "
                f"{' or '.join(self._cached)} declares too little"
            )


def _is_cached(plugin: type[Plugin]) -> bool:
    return plugin.depends_on.node < NodePart.ANYTHING or hasattr(plugin, "answer_key")
