"""Holds a cluster on which changes are tried and taken back: `fork`, change, ask, then `revert` or `commit`.

Every change notes how to undo it, so that taking back costs in proportion to what was changed, not to the cluster.
Undone in reverse order, the columns are byte for byte what they were. Forks nest: `commit` leaves the changes to the
fork around it.

Pods are placed by the engine that schedules, with a writer that writes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.cluster.order import zone_key
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.explain import Unwritten, fill_cluster, with_uid
from podium.engine.scheduler import Scheduler
from podium.framework.clock import Clock, SystemClock
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Nomination
from podium.framework.handle import Driver
from podium.framework.plugin_failures import OnPluginFailure, ignore_failure
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Status, Waits
from podium.kube import CustomObject, Node, Pod, ResourceClaimTemplate
from podium.kube.claims import BIND_COMPLETED, claim_name
from podium.kube.kinds_around_pods import RuntimeClass
from podium.load.readings import LoadSource

Undo = Callable[[], object]


class Sandbox:
    """A cluster, the engine that places pods on it, and what undoes each change."""

    def __init__(
        self,
        objects: Iterable[Any],
        config: SchedulerConfig,
        registry: Registry,
        *,
        clock: Clock | None = None,
        load: LoadSource | None = None,
        parity: bool = False,
        on_failure: OnPluginFailure = ignore_failure,
    ) -> None:
        self.config = config
        self.registry = registry
        self.clock = clock or SystemClock()
        driver = Driver(clock=self.clock, writer=Unwritten(), rng=random.Random(0), load=load, on_failure=on_failure)
        self.engine = Scheduler(config, registry, driver, _NoListener(), parity=parity)
        self.served = frozenset(self.engine.profiles)
        objects = list(objects)
        self.templates = [each for each in objects if isinstance(each, RuntimeClass | ResourceClaimTemplate)]
        """What only admission and controllers read: what pods and their claims are completed by."""
        fill_cluster(self.cluster, objects, None, set(self.served), self.engine.nominator)
        self.version = 0
        """Moves with every change."""
        self._undo: list[Undo] = []
        self._forks: list[tuple[int, int]] = []
        self._placed: dict[str, tuple[ProfileRuntime, Cycle, str]] = {}

    @property
    def cluster(self) -> Cluster:
        return self.engine.cluster

    # Forks

    def fork(self) -> None:
        """Begin changes that `revert` takes back."""
        self._forks.append((len(self._undo), self.engine.sampling.next_start))

    def commit(self) -> None:
        """Keep the changes since the last `fork`; the fork around it still takes them back."""
        self._forks.pop()
        if not self._forks:
            self._undo.clear()

    def revert(self) -> None:
        """Take back all changes since the last `fork`."""
        length, start = self._forks.pop()
        while len(self._undo) > length:
            self._undo.pop()()
        self.engine.sampling.next_start = start
        self.version += 1

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Take back what the block changes."""
        self.fork()
        try:
            yield
        finally:
            self.revert()

    def _did(self, undo: Undo) -> None:
        self.version += 1
        if self._forks:
            self._undo.append(undo)

    # Objects

    def set(self, item: Any) -> None:
        """Add an object, or put it in the place of the one of its name. A finished pod is gone."""
        if isinstance(item, Node):
            self._set_node(item)
        elif isinstance(item, Pod):
            self._set_pod(with_uid(item))
        elif isinstance(item, CustomObject):
            self.set_in(self.cluster.objects.custom_store(item.resource), item.key, item.data)
        else:
            store = self.cluster.objects.store_of(type(item))
            if store is not None:
                self.set_in(store, item.key, item)

    def delete(self, item: Any) -> None:
        """Take an object away; one that is not there is left alone. A node's pods go with it."""
        if isinstance(item, Node):
            self.remove_node(item.name)
        elif isinstance(item, Pod):
            self.remove_pod(item)
        elif isinstance(item, CustomObject):
            self._discard_in(self.cluster.objects.custom_store(item.resource), item.key)
        else:
            store = self.cluster.objects.store_of(type(item))
            if store is not None:
                self._discard_in(store, item.key)

    def nodes(self) -> list[Node]:
        """All nodes, in visiting order."""
        nodes = self.cluster.nodes
        return [node for row in self.cluster.order.rows.tolist() if (node := nodes[row]) is not None]

    def node(self, name: str) -> Node | None:
        row = self.cluster.row_of.get(name)
        return None if row is None else self.cluster.nodes[row]

    def pods_on(self, name: str) -> list[Pod]:
        row = self.cluster.row_of.get(name)
        return [] if row is None else [placed.pod for placed in self.cluster.pods_on[row].values()]

    def pending(self) -> list[Pod]:
        """The pods that wait for a node, of profiles that the configuration has."""
        return [
            pod
            for pod in self.cluster.objects.pending_pods
            if pod.spec.scheduler_name in self.served and not pod.terminating and pod.uid not in self.cluster.pods
        ]

    def _set_node(self, node: Node) -> None:
        cluster = self.cluster
        before = self.node(node.name)
        if before is None:
            cluster.set_node(node)
            self._did(lambda: cluster.remove_node(node.name))
            return
        order = cluster.order.saved() if zone_key(before.labels) != zone_key(node.labels) else None
        cluster.set_node(node)

        def undo() -> None:
            cluster.set_node(before)
            if order is not None:
                cluster.order.restore(order)

        self._did(undo)

    def remove_node(self, name: str) -> None:
        """Take a node away, with its pods."""
        cluster, before = self.cluster, self.node(name)
        if before is None:
            return
        for pod in self.pods_on(name):
            self.remove_pod(pod)
        order = cluster.order.saved()
        cluster.remove_node(name)

        def undo() -> None:
            cluster.set_node(before)
            cluster.order.restore(order)

        self._did(undo)

    def _set_pod(self, pod: Pod) -> None:
        pending = self.cluster.objects.pending_pods
        waiting = pending.get(pod.key)
        if waiting is not None and (pod.node_name or pod.finished or waiting.uid != pod.uid):
            self._stop_waiting(waiting)
        placed = self.cluster.pods.get(pod.uid)
        if placed is not None:
            self._take_off(pod.uid)
        if pod.finished:
            return
        if pod.node_name:
            self._put_on(pod)
            return
        self.set_in(pending, pod.key, pod)
        if pod.spec.scheduler_name in self.served:
            self._nominate(pod, None)

    def remove_pod(self, pod: Pod) -> None:
        """Take a pod away, from its node or from those that wait."""
        uid = with_uid(pod).uid
        if uid in self.cluster.pods:
            self._take_off(uid)
        waiting = self.cluster.objects.pending_pods.get(pod.key)
        if waiting is not None and waiting.uid == uid:
            self._stop_waiting(waiting)

    def _stop_waiting(self, pod: Pod) -> None:
        self._nominate(pod, "")
        self._discard_in(self.cluster.objects.pending_pods, pod.key)

    def _put_on(self, pod: Pod) -> None:
        self.cluster.set_pod(pod)
        self._did(lambda: self.cluster.remove_pod(pod.uid))

    def _take_off(self, uid: str) -> None:
        cluster = self.cluster
        placed = cluster.pods[uid]
        if placed.assumed:
            self._unplace(uid)
            return
        row, before = placed.row, list(cluster.pods_on[placed.row])
        cluster.remove_pod(uid)

        def undo() -> None:
            cluster.set_pod(placed.pod)
            here = cluster.pods_on[row]
            cluster.pods_on[row] = {each: here[each] for each in before}  # the order decides between equal victims

        self._did(undo)

    def _nominate(self, pod: Pod, node_name: str | None) -> None:
        nominator = self.engine.nominator
        node = nominator.node_of(pod.uid)
        known = next((each for each in nominator.on(node) if each.uid == pod.uid), None) if node else None
        nominator.nominate(pod, node_name)
        self._did(lambda: nominator.remove(pod.uid) if known is None else nominator.nominate(known, node))

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Set a node aside for a pod, as preemption does."""
        self._nominate(pod, node_name)

    def set_in(self, store: Any, key: str, value: Any) -> None:
        """Put an object into a store of the cluster."""
        before = store.get(key)
        store.set(key, value)
        self._did(lambda: store.discard(key) if before is None else store.set(key, before))

    def _discard_in(self, store: Any, key: str) -> None:
        before = store.get(key)
        if before is not None:
            store.discard(key)
            self._did(lambda: store.set(key, before))

    # Placements

    def place(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> Status | Waits:
        """Let a pod stand on a node, as the scheduler would; or why a plugin refuses it there."""
        pod, nominator = cycle.pod, self.engine.nominator
        node = nominator.node_of(pod.uid)
        known = next((each for each in nominator.on(node) if each.uid == pod.uid), None) if node else None
        waits = self.engine.place(runtime, cycle, node_name)
        if isinstance(waits, Status):
            self.engine.take_back(runtime, cycle, node_name)
            if known is not None:
                nominator.nominate(known, node)
            return waits
        self.placed(runtime, cycle, node_name)
        if known is not None:
            self._did(lambda: nominator.nominate(known, node))
        return waits

    def placed(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> None:
        """Note a pod that the engine has let stand on a node."""
        uid = cycle.pod.uid
        self._placed[uid] = (runtime, cycle, node_name)

        def undo() -> None:
            del self._placed[uid]
            self.engine.take_back(runtime, cycle, node_name)

        self._did(undo)
        if cycle.pod.spec.volumes:
            self._bind_claims(cycle.pod)

    def _bind_claims(self, pod: Pod) -> None:
        """Complete what the volume controller would: the pod's claims are bound to the volumes that were chosen."""
        claims, volumes = self.cluster.objects.claims, self.cluster.objects.volumes
        chosen = {
            f"{given.namespace}/{given.name}": key
            for key in volumes.assumed
            if (volume := volumes.get(key)) is not None and (given := volume.spec.claim_ref) is not None
        }
        for key in (f"{pod.namespace}/{claim_name(pod, each)}" for each in pod.spec.volumes):
            claim = claims.get(key)
            if claim is None or claim.spec.volume_name or key not in chosen:
                continue
            annotations = {**claim.annotations, BIND_COMPLETED: "yes"}
            bound = replace(
                claim,
                metadata=replace(claim.metadata, annotations=annotations),
                spec=replace(claim.spec, volume_name=chosen[key]),
            )
            claims.assume(key, bound)
            self._did(partial(claims.restore, key))

    def _unplace(self, uid: str) -> None:
        """Take a pod off again that was placed here."""
        runtime, cycle, node_name = self._placed.pop(uid)
        self.engine.take_back(runtime, cycle, node_name)

        def undo() -> None:
            self.engine.place(runtime, cycle, node_name)
            self._placed[uid] = (runtime, cycle, node_name)

        self._did(undo)


class _NoListener:
    """A listener that ignores outcomes: they are read off the decisions."""

    def scheduled(self, pod: Pod, node_name: str) -> None:
        return None

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        return None
