"""Takes in changes of the cluster: into the state, then into the queue as events that may wake pods.

Each change is applied to the columns first and announced afterwards (a vanishing node the other way round, as kube-
scheduler does). Pods without a node go to the queue if one of our profiles is asked for; pods of other schedulers are
ignored until they have a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from podium.cluster import PlacedPod
from podium.config.feature_gates import NO_GATES, Gate, Gates
from podium.engine.changes import node_events, pod_events
from podium.framework.events import QUIET, RESOURCE_OF, Action, Event, Resource
from podium.framework.plugin import Plugin
from podium.framework.plugin_failures import PluginFailure
from podium.framework.timer import Step, Timer
from podium.kube import DeviceTaintRule, Node, Pod

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler

ASSIGNED_ADD = Event(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_DELETE = Event(Resource.ASSIGNED_POD, Action.DELETE)


class Intake:
    """Where a driver delivers what it hears: `set` for anything new or changed, `delete` for anything gone.

    A change can mean several events (a node's labels and its taints changed; a waiting pod is gone and a placed one has
    come): each is recorded as having taken as long as all together.
    """

    def __init__(self, scheduler: Scheduler, timer: Timer, gates: Gates = NO_GATES) -> None:
        self._scheduler = scheduler
        self._cluster = scheduler.cluster
        self._gangs_wait = Gate.GANG_SCHEDULING in gates  # a new pod may complete a gang
        self._queue = scheduler.queue
        self._timer = timer
        named = scheduler.rules.own_changes_have_a_name
        waiting = Resource.UNSCHEDULED_POD if named else Resource.UNSCHEDULABLE_POD
        self._pod_add, self._pod_update, self._pod_delete = (
            Event(waiting, action) for action in (Action.ADD, Action.UPDATE, Action.DELETE)
        )
        plugins = [plugin for runtime in scheduler.profiles.values() for plugin in runtime.plugins.values()]
        self._observers = [plugin for plugin in plugins if _observes(plugin)]
        self._quiet = QUIET.difference(*(plugin.depends_on.kinds or () for plugin in plugins))

    def set(self, item: Any) -> None:
        """Take in an object that is new or has changed."""
        self._timer.time_intake(self._set, item)

    def delete(self, item: Any) -> None:
        """Take in that an object is gone."""
        self._timer.time_intake(self._delete, item)

    def set_custom(self, resource: str, key: str, value: Any | None) -> None:
        """A custom resource ("plural.group") came, changed, or (None) went."""
        self._timer.time_intake(self._set_custom, (resource, key, value))

    def _set(self, item: Any) -> None:
        if isinstance(item, Pod):
            self._set_pod(item)
        elif isinstance(item, Node):
            self._set_node(item)
        else:
            self._set_object(item)

    def _delete(self, item: Any) -> None:
        if isinstance(item, Pod):
            self._delete_pod(item)
        elif isinstance(item, Node):
            self._delete_node(item)
        else:
            self._delete_object(item)

    # Pods

    def _set_pod(self, pod: Pod) -> None:
        if pod.finished:
            self._delete_pod(pod)
            return
        uid = pod.metadata.uid
        placed = self._cluster.pods.get(uid)
        waiting_version = self._cluster.objects.pending_pods.get(pod.key)
        if waiting_version is not None and waiting_version.metadata.uid != uid:
            self._delete_pod(waiting_version)  # another pod of that name: the event of this one's end was missed
            waiting_version = None
        self._observe(Resource.POD, waiting_version if placed is None else placed.pod, pod)
        if pod.spec.node_name:
            self._set_assigned(pod, placed, waiting_version)
        elif pod.spec.scheduler_name in self._scheduler.profiles:
            self._set_unassigned(pod, waiting_version)

    def _set_assigned(self, pod: Pod, placed: PlacedPod | None, waiting_version: Pod | None) -> None:
        before = placed.pod if placed is not None and not placed.assumed else None
        self._cluster.set_pod(pod)
        if waiting_version is not None:
            self._cluster.objects.pending_pods.discard(pod.key)
            self._dequeue(waiting_version)
        if before is None:
            self._on_event(ASSIGNED_ADD, None, pod)
            return
        for event in pod_events(before, pod):
            self._on_event(event, before, pod)

    def _set_unassigned(self, pod: Pod, before: Pod | None) -> None:
        pending = self._cluster.objects.pending_pods
        if before is not None and before.metadata.resource_version == pod.metadata.resource_version != "":
            return
        pending.set(pod.key, pod)
        if before is None:
            self._timer.event(self._pod_add)
            self._queue.add(pod)
            if self._gangs_wait:
                self._on_event(self._pod_add, None, pod)
            return
        placed = self._cluster.pods.get(pod.uid)
        if placed is not None and placed.assumed:
            if pod.terminating and not before.terminating:
                self._assumed_is_deleted(placed)
            return
        self._timer.event(self._pod_update)
        self._queue.update(before, pod)
        if before.status.nominated_node_name and before.status.nominated_node_name != pod.status.nominated_node_name:
            self._nominated_room_is_free(before)

    def _delete_pod(self, pod: Pod) -> None:
        placed = self._cluster.pods.get(pod.uid)
        pending = self._cluster.objects.pending_pods.get(pod.key)
        if pending is not None and pending.uid == pod.uid:
            self._cluster.objects.pending_pods.discard(pod.key)
            self._dequeue(pending)
            if placed is not None and placed.assumed:
                self._assumed_is_deleted(placed)
            elif pending.status.nominated_node_name:
                self._nominated_room_is_free(pending)
        elif placed is not None:
            self._cluster.remove_pod(pod.uid)
            self._on_event(ASSIGNED_DELETE, placed.pod, None)
        if placed is not None or pending is not None:
            last = pending if placed is None else placed.pod
            self._observe(Resource.POD, pod if pod.finished else last, None)  # how it ended is in the last version

    def _assumed_is_deleted(self, placed: PlacedPod) -> None:
        """A pod that is placed but not bound is going: let go of it, or of its place."""
        pod, node_name = placed.pod, self._cluster.names[placed.row]
        waiting = self._scheduler.waiting.get(pod.uid)
        if waiting is None or not waiting.reject("", "removed"):
            self._cluster.forget(pod.uid)
        self._on_event(ASSIGNED_DELETE, on_node(pod, node_name), None)

    def _nominated_room_is_free(self, pod: Pod) -> None:
        """Pods of at most its priority had to leave room for it, and no longer have to."""
        self._timer.event(ASSIGNED_DELETE)
        self._queue.on_event(ASSIGNED_DELETE, pod, None, precheck=lambda other: other.priority <= pod.priority)

    def _dequeue(self, pod: Pod) -> None:
        self._timer.event(self._pod_delete)
        self._queue.delete(pod)

    # Nodes and the rest

    def _set_node(self, node: Node) -> None:
        row = self._cluster.row_of.get(node.name)
        before = None if row is None else self._cluster.nodes[row]
        self._cluster.set_node(node)
        if before is None:
            self._on_event(Event(Resource.NODE, Action.ADD), None, node)
            return
        for event in node_events(before, node):
            self._on_event(event, before, node)

    def _delete_node(self, node: Node) -> None:
        row = self._cluster.row_of.get(node.name)
        if row is not None and self._cluster.nodes[row] is not None:
            self._on_event(Event(Resource.NODE, Action.DELETE), node, None)
            self._cluster.remove_node(node.name)

    def _set_object(self, item: Any) -> None:
        store = self._cluster.objects.store_of(type(item))
        if store is None:
            return
        before = store.get(item.key)
        store.set(item.key, item)
        self._announce(type(item), before, item)

    def _delete_object(self, item: Any) -> None:
        store = self._cluster.objects.store_of(type(item))
        if store is not None:
            before = store.discard(item.key)
            if before is not None:
                self._announce(type(item), before, None)

    def _announce(self, kind: type, before: Any, after: Any) -> None:
        resource = RESOURCE_OF.get(kind)
        if resource is not None and kind not in self._quiet:
            action = Action.ADD if before is None else Action.DELETE if after is None else Action.UPDATE
            if kind is DeviceTaintRule:
                action = Action.UPDATE  # whatever became of a rule, slices have other taints now
            self._on_event(Event(resource, action), before, after)

    def _set_custom(self, change: tuple[str, str, Any | None]) -> None:
        resource, key, value = change
        store = self._cluster.objects.custom_store(resource)
        before = store.get(key)
        if value is None:
            store.discard(key)
        else:
            store.set(key, value)
        self._observe(resource, before, value)
        action = Action.ADD if before is None else Action.DELETE if value is None else Action.UPDATE
        self._on_event(Event(resource, action), before, value)

    def _on_event(self, event: Event, before: Any, after: Any) -> None:
        """Wake the pods that the event may help."""
        self._timer.event(event)
        self._queue.on_event(event, before, after)

    def _observe(self, resource: str, before: Any, after: Any) -> None:
        for plugin in self._observers:
            try:
                plugin.observe(resource, before, after)
            except Exception as error:  # whatever the plugin raises
                key = getattr(before if after is None else after, "key", "")
                plugin.handle.on_failure(PluginFailure(plugin.name, Step.OBSERVE, key, "", error))


def on_node(pod: Pod, node_name: str) -> Pod:
    """The pod as it stood on the node, for the event that it left."""
    return replace(pod, spec=replace(pod.spec, node_name=node_name))


def _observes(plugin: Plugin) -> bool:
    return type(plugin).observe is not Plugin.observe
