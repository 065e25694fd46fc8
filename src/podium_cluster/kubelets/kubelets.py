"""Runs pods on embedded nodes, in this process: what kubelets do, without containers.

async with Kubelets(api, clock, rng) as kubelets:
    kubelets.add_nodes([NodeShape(count=5, cpu="8", memory="32Gi")])

The Leases of the embedded nodes are renewed in turn, as their signs of life. A kubelet renews every 10 s. Of 5,000
nodes that would be 500 writes a second that say nothing new, so all nodes together write ten times a second at most,
and their Leases say how long they hold. Controllers in this process do not go by the Leases but ask the kubelets.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from podium.framework.clock import Clock
from podium.kube.decode import decode_json
from podium.kube.node import Node
from podium.kube.pod import Pod
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import NODE, POD, built_in
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.apiserver.write_context import micro_timestamp
from podium_cluster.kubelets.machines import Machine
from podium_cluster.kubelets.metrics import serve_metrics
from podium_cluster.kubelets.pod_life import PodLives
from podium_cluster.kubelets.shapes import DeviceShape, NodeShape, conditions, node_object, publish
from podium_cluster.kubelets.timeline import Timeline

EMBEDDED = "podium.dev/embedded-node"
"""The annotation by which a process that takes over a stored cluster knows its nodes; its value is their number."""

_DIGITS = 9
_NODE_NAME = POD.fields.names.index("spec.nodeName")
_PHASE = POD.fields.names.index("status.phase")


class Kubelets:
    """`speed` shortens all that pods take; heartbeats and grace periods keep their length."""

    def __init__(self, api: EmbeddedApi, clock: Clock, rng: random.Random, *, speed: float = 1.0) -> None:
        self._api = api
        self._clock = clock
        self.machines: dict[str, Machine] = {}
        self._number = 0
        self._timeline = Timeline(clock)
        self._lives = PodLives(api, clock, rng, self._timeline, speed)
        self._leases = LeaseRenewal(api, clock, self._timeline, self.machines)
        serve_metrics(api, clock, self.machines)
        self._task: asyncio.Task[None] | None = None
        self._unlisten: list[Callable[[], None]] = []

    def add_nodes(self, shapes: Iterable[NodeShape]) -> list[str]:
        """Registers the nodes and returns their names; one that is there already is taken over as it is."""
        names = []
        for shape in shapes:
            for name in shape.names():
                if self._api.store.get(NODE, "", name) is None:
                    node = node_object(shape, name, self._number, self._clock.now())
                    node["metadata"]["annotations"] = {EMBEDDED: str(self._number)}
                    self._api.create(NODE, node)
                self._adopt(name)
                names.append(name)
        return names

    def add_devices(self, shapes: Sequence[DeviceShape]) -> int:
        """Publishes devices of the nodes that there are now; how many. Raises StatusError for what the API refuses."""
        return publish(self._api, shapes, self.machines)

    def stop_node(self, name: str) -> None:
        """The node falls silent: its pods stay as they are, and after a while it counts as unreachable."""
        machine = self.machines[name]
        if machine.stopped_at is None:
            machine.stopped_at = self._clock.now()

    def start_node(self, name: str) -> None:
        machine = self.machines[name]
        if machine.stopped_at is None:
            return
        machine.stopped_at = None
        write_ready(self._api, self._clock, name)
        self._lives.resume(machine)

    def last_heartbeat(self, node: str) -> float | None:
        """When the node was last heard of: now, unless it is stopped; None for a node that is not run here."""
        machine = self.machines.get(node)
        if machine is None:
            return None
        return self._clock.now() if machine.stopped_at is None else machine.stopped_at

    def start(self) -> None:
        """Takes over the nodes of an earlier life and their pods, and begins."""
        store = self._api.store
        self._unlisten = [store.listen(self._node_changed, NODE), store.listen(self._pod_changed, POD)]
        for stored in store.items(NODE):
            if EMBEDDED.encode() in stored.raw:
                self._adopt(stored.name)
        for stored in store.items(POD):
            self._pod_changed(ObjectChange("ADDED", stored, None))
        self._timeline.after(0.0, self._leases.beat)
        self._task = asyncio.get_running_loop().create_task(self._timeline.run(), name="node kubelets")

    async def stop(self) -> None:
        while self._unlisten:
            self._unlisten.pop()()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def __aenter__(self) -> Kubelets:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _adopt(self, name: str) -> None:
        stored = self._api.store.get(NODE, "", name)
        if stored is None or name in self.machines:
            return
        node = decode_json(Node, stored.raw)
        noted = node.annotations.get(EMBEDDED, "")
        index = int(noted) if noted.isdecimal() and len(noted) <= _DIGITS else self._number
        self._number = max(self._number, index + 1)
        self.machines[name] = Machine(node, index)

    def _node_changed(self, change: ObjectChange) -> None:
        machine = self.machines.get(change.new.name)
        if machine is None:
            return
        if change.type == "DELETED":
            del self.machines[change.new.name]
            for run in list(machine.runs.values()):
                machine.remove(run)
        else:
            machine.renew(decode_json(Node, change.new.raw))

    def _pod_changed(self, change: ObjectChange) -> None:
        stored = change.new
        machine = self.machines.get(stored.fields[_NODE_NAME])
        if machine is None:
            return
        key = (stored.namespace, stored.name)
        run = machine.runs.get(key)
        if run is not None and (change.type == "DELETED" or run.uid != stored.uid):
            machine.remove(run)
            run = None
        if change.type == "DELETED":
            return
        finished = stored.fields[_PHASE] in ("Succeeded", "Failed")
        if run is None:
            if not finished:
                self._lives.take(machine, key, decode_json(Pod, stored.raw))
        elif finished and not run.leaving:
            machine.remove(run)
        elif b'"deletionTimestamp"' in stored.raw:
            pod = decode_json(Pod, stored.raw)
            grace = pod.metadata.deletion_grace_period_seconds or 0
            if pod.terminating and (not run.leaving or grace < run.grace):
                run.grace = grace
                self._lives.leave(machine, run, grace)


LEASE = built_in("coordination.k8s.io/v1", "Lease")
NAMESPACE = "kube-node-lease"
INTERVAL = 10.0
PER_SECOND = 10.0


class LeaseRenewal:
    def __init__(self, api: EmbeddedApi, clock: Clock, timeline: Timeline, machines: Mapping[str, Machine]) -> None:
        self._api = api
        self._clock = clock
        self._timeline = timeline
        self._machines = machines
        self._round: list[str] = []

    def beat(self) -> None:
        """Renews the next node's Lease and plans the one after."""
        if not self._round:
            self._round = list(self._machines)[::-1]
        machine = self._machines.get(self._round.pop()) if self._round else None
        new = machine is not None and machine.stopped_at is None and self._renew(machine)
        # Who asks about a node expects its Lease to be there, so the first ones are made one right after the other.
        pause = 1 / PER_SECOND if new else max(INTERVAL / max(1, len(self._machines)), 1 / PER_SECOND)
        self._timeline.after(pause, self.beat)

    def _renew(self, machine: Machine) -> bool:
        """Whether the Lease is a new one."""
        now = micro_timestamp(self._clock.now())
        holds = int(4 * max(INTERVAL, len(self._machines) / PER_SECOND))
        stored = self._api.store.get(LEASE, NAMESPACE, machine.name)
        if stored is not None:
            lease = stored.decode()
            lease["spec"] = {**(lease.get("spec") or {}), "renewTime": now, "leaseDurationSeconds": holds}
            self._api.update(LEASE, lease)
            return False
        owner = {"apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": machine.node.uid}
        lease = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": machine.name, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": machine.name, "leaseDurationSeconds": holds, "renewTime": now},
        }
        self._api.create(LEASE, lease, namespace=NAMESPACE)
        return True


def write_ready(api: EmbeddedApi, clock: Clock, name: str) -> None:
    """The node says that all is well: when it is back after it was stopped."""
    stored = api.store.get(NODE, "", name)
    if stored is not None:
        node, now = stored.decode(), clock.now()
        node["status"] = {**(node.get("status") or {}), "conditions": conditions(now, now)}
        api.update(NODE, node, subresource="status")
