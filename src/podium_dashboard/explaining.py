"""Copies what the scheduler knows, so that pods can be explained elsewhere while deciding goes on.

The answer is that of `podium explain`: the same function on the same objects, with the scheduler's own plugins and the
load that it has measured. What a viewer may not see is taken out of it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from podium.cluster import Cluster
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.explain import Eviction, Explanation, Outcome
from podium.kube import Pod
from podium.kube.custom_object import ThirdPartyObject
from podium.kube.meta import ObjectMeta
from podium.load.readings import GivenLoad, Readings
from podium.run.dashboard import SchedulerView
from podium.serving.event_recorder import waiting_on_permit
from podium_dashboard.viewer import Viewer

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
