"""Explains pods on copies of what the scheduler knows, while deciding goes on.

The answer is that of `podium explain`: the same function on the same objects, with the scheduler's own plugins and the
load that it has measured. What a viewer may not see is taken out of it.

One trial cluster is kept between questions about pods: it takes in what changed, and is not built from nothing. Chance
begins as in a new one, and where the order of nodes would differ, the cluster is built again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

from podium.cluster import Cluster
from podium.cluster.order import zone_key
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.explain import Eviction, Explanation, Outcome, as_unbound, explain_in_trial, profile_of, with_uid
from podium.kube import Node, Pod
from podium.kube.custom_object import ThirdPartyObject
from podium.kube.meta import ObjectMeta
from podium.load.readings import GivenLoad, Readings
from podium.run.dashboard import SchedulerView
from podium.serving.event_recorder import waiting_on_permit
from podium.whatif.sandbox import Sandbox
from podium_dashboard.access import Viewer

HIDDEN: Final = "a pod of another namespace"


class Known(NamedTuple):
    """What a scheduler knows, to be judged on elsewhere: objects are values, so the lists alone are copied."""

    objects: list[Any]
    config: SchedulerConfig
    registry: Registry
    load: dict[Hashable, Readings]
    held: dict[str, str]
    """Pods that are held at Permit, and by what."""

    def pod(self, key: str) -> Pod | None:
        return next((each for each in self.objects if isinstance(each, Pod) and each.key == key), None)


def known_of(view: SchedulerView) -> Known:
    """Everything that a decision rests on; to be called where the scheduler may be read."""
    load: dict[Hashable, Readings] = {each.series: each.readings for each in view.followed}
    held = {each.pod.key: waiting_on_permit(each).note for each in view.engine.waiting if not each.settled}
    return Known(list(view.objects) or _objects_of(view.engine.cluster), view.config, view.registry, load, held)


def _objects_of(cluster: Cluster) -> list[Any]:
    """The objects in the order in which the API server lists them."""
    objects: list[Any] = sorted((node for node in cluster.nodes if node is not None), key=lambda node: node.name)
    pods = list(cluster.objects.pending_pods)
    pods += [  # after those that wait: one that is being bound still stands there
        placed.pod if placed.pod.node_name else _on_node(placed.pod, cluster.names[placed.row])
        for placed in cluster.pods.values()
    ]
    objects += sorted({pod.key: pod for pod in pods}.values(), key=lambda pod: pod.key)
    for store in cluster.objects.stores():
        objects += store
    for resource, custom in cluster.objects.custom.items():
        objects += [_custom(resource, value) for value in custom]
    return objects


def _on_node(pod: Pod, node_name: str) -> Pod:
    from msgspec.structs import replace

    return replace(pod, spec=replace(pod.spec, node_name=node_name))


def _custom(resource: str, value: Any) -> ThirdPartyObject:
    metadata = value.get("metadata") or {}
    named = ObjectMeta(name=metadata.get("name", ""), namespace=metadata.get("namespace", ""))
    return ThirdPartyObject(metadata=named, plural_group=resource, whole=value)


def as_held(known: Known, explanation: Explanation) -> Explanation:
    """The explanation of a pod that may be held at Permit."""
    held = known.held.get(explanation.pod)
    if held is not None:
        explanation.outcome, explanation.message = Outcome.WAITS, held
    return explanation


def load_of(known: Known) -> GivenLoad:
    """A copy of the measured load, which its sources may change meanwhile."""
    load = GivenLoad()
    for series, readings in known.load.items():
        copied = load.follow(series)
        copied.write(dict(readings.values), readings.measured_at, dict(readings.times))
    return load


def shown_to(viewer: Viewer, explanation: Explanation) -> Explanation:
    """The explanation without the names of pods that the viewer may not see."""
    if viewer.everything:
        return explanation
    for eviction in [explanation.preemption, *explanation.preemption_ties]:
        if eviction is not None:
            _hide_victims(viewer, eviction)
    for remedy in explanation.remedies:
        remedy.changes = [_without_names(viewer, change) for change in remedy.changes]
    return explanation


def _hide_victims(viewer: Viewer, eviction: Eviction) -> None:
    eviction.victims = [each if viewer.sees_key(each) else HIDDEN for each in eviction.victims]


def _without_names(viewer: Viewer, text: str) -> str:
    """A remedy's text, in which words like "namespace/name" are replaced that the viewer may not see."""
    return " ".join(
        HIDDEN if "/" in word and _is_foreign(viewer, word.strip(",;:()\"'")) else word for word in text.split(" ")
    )


def _is_foreign(viewer: Viewer, key: str) -> bool:
    namespace, _, name = key.partition("/")
    return bool(name) and "." not in namespace and not viewer.sees(namespace)


MOST_CHANGED: Final = 0.25
"""The share of objects from which on building again is quicker than taking in what changed."""
ObjectKey = tuple[object, str]


class _Changes(NamedTuple):
    gone: list[Any]
    new: list[Any]


class LastingCluster:
    """A trial cluster for one question at a time. It may live in any thread."""

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None
        self._objects: dict[ObjectKey, Any] = {}
        self._load = GivenLoad()
        self._generations: dict[Hashable, int] = {}
        self.built = 0
        """How often the cluster was built."""

    def take_in(self, known: Known) -> Sandbox:
        """The cluster as it is now."""
        objects = {_key_of(each): each for each in known.objects}
        sandbox = self._sandbox
        changes = None if sandbox is None else _changes(self._objects, objects)
        if sandbox is None or changes is None or sandbox.config is not known.config:
            self._load, self._generations = GivenLoad(), {}
            self._write_load(known.load)
            self._sandbox = None  # a failure below leaves nothing half built
            sandbox = Sandbox(known.objects, known.config, known.registry, load=self._load)
            self.built += 1
        else:
            self._sandbox = None
            self._write_load(known.load)
            _apply(sandbox, changes, known)
        self._sandbox, self._objects = sandbox, objects
        return sandbox

    def explained(self, known: Known, pod: Pod) -> Explanation:
        """Judge a pod; raises UnknownProfileError. It takes a while, so call it in a thread."""
        unbound = as_unbound(with_uid(pod))
        profile_of(unbound, known.config)
        sandbox = self.take_in(known)
        runtime = sandbox.engine.profiles[unbound.spec.scheduler_name]
        runtime.handle.rng.seed(0)
        with sandbox.trying():
            sandbox.remove_pod(pod)
            sandbox.set_in(sandbox.cluster.objects.pending_pods, unbound.key, unbound)
            explanation = explain_in_trial(runtime, unbound, known.config)
        return as_held(known, explanation)

    def _write_load(self, load: Mapping[Hashable, Readings]) -> None:
        for series, readings in load.items():
            if self._generations.get(series) != readings.generation:
                self._generations[series] = readings.generation
                self._load.follow(series).write(dict(readings.values), readings.measured_at, dict(readings.times))


def _key_of(item: Any) -> ObjectKey:
    if isinstance(item, Pod):
        return Pod, item.uid or item.key
    kind: object = item.plural_group if isinstance(item, ThirdPartyObject) else type(item)
    return kind, item.name if isinstance(item, Node) else item.key


def _changes(before: Mapping[ObjectKey, Any], after: Mapping[ObjectKey, Any]) -> _Changes | None:
    """What to take in; None where the cluster has to be built again."""
    gone = [item for key, item in before.items() if key not in after]
    new = [item for key, item in after.items() if not _same(before.get(key), item)]
    if len(gone) + len(new) > MOST_CHANGED * len(before):
        return None
    if any(isinstance(item, Node) for item in gone):
        return None
    for item in new:
        if isinstance(item, Node):
            known = before.get(_key_of(item))
            if known is None or zone_key(known.labels) != zone_key(item.labels):
                return None
    return _Changes(gone, new)


def _same(before: Any, after: Any) -> bool:
    """Whether two objects are one version: some are copies that say on which node a pod is."""
    if before is after:
        return True
    if isinstance(after, ThirdPartyObject):
        return before is not None and before.whole is after.whole
    if not isinstance(after, Pod) or before is None:
        return False
    return before.metadata is after.metadata and before.status is after.status and before.node_name == after.node_name


def _apply(sandbox: Sandbox, changes: _Changes, known: Known) -> None:
    touched = {each.node_name for each in changes.new if isinstance(each, Pod)} - {""}
    for each in changes.gone:
        sandbox.delete(each)
    for each in changes.new:
        sandbox.set(each)
    if not touched:
        return
    cluster = sandbox.cluster
    places = {each.key: place for place, each in enumerate(known.objects) if isinstance(each, Pod)}
    for name in touched:
        row = cluster.row_of.get(name)
        if row is not None:  # the order of pods decides between victims that are equal otherwise
            cluster.pods_on[row] = dict(
                sorted(cluster.pods_on[row].items(), key=lambda item: places.get(item[1].pod.key, 0))
            )
