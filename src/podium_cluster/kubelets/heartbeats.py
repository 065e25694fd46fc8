"""Renews the Leases of the embedded nodes in turn, as their signs of life.

A kubelet renews every 10 s. Of 5,000 nodes that would be 500 writes a second that say nothing new, so all nodes
together write ten times a second at most, and their Leases say how long they hold. Controllers in this process do not
go by the Leases but ask the kubelets.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.framework.clock import Clock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import NODE, built_in
from podium_cluster.apiserver.write_context import micro_timestamp
from podium_cluster.kubelets.machines import Machine
from podium_cluster.kubelets.shapes import conditions
from podium_cluster.kubelets.timeline import Timeline

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
