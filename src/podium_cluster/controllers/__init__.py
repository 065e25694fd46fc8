"""The controllers of the embedded cluster: what kube-controller-manager does, in this process.

One worker serves them all in turn, so their writes have one order, which a seed reproduces.
"""

from __future__ import annotations

import asyncio
import contextlib

from podium.framework.clock import Clock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.controllers.context import ControllerContext
from podium_cluster.controllers.daemon_set import DaemonSets
from podium_cluster.controllers.deployment import Deployments
from podium_cluster.controllers.disruption import DisruptionBudgets
from podium_cluster.controllers.garbage import EventExpiry, GarbageCollector, Namespaces, PodGarbage
from podium_cluster.controllers.job import Jobs
from podium_cluster.controllers.node_lifecycle import Heartbeats, NodeLifecycle
from podium_cluster.controllers.replica_set import REPLICA_SET, REPLICATION_CONTROLLER, ReplicaSets
from podium_cluster.controllers.resource_claims import ResourceClaims
from podium_cluster.controllers.stateful_set import StatefulSets
from podium_cluster.controllers.taint_eviction import DeviceTaintEviction, TaintEviction
from podium_cluster.controllers.volumes import Volumes

__all__ = ["Controllers"]


class Controllers:
    """`async with Controllers(api, clock): …` keeps the cluster of `api` in order. `heartbeats` are usually the node
    kubelets; without them only nodes with a Lease can become unreachable."""

    def __init__(self, api: EmbeddedApi, clock: Clock, *, heartbeats: Heartbeats | None = None) -> None:
        self._context = ControllerContext(api, clock)
        self._task: asyncio.Task[None] | None = None
        self._all = (
            Deployments(self._context),
            ReplicaSets(self._context, REPLICA_SET),
            ReplicaSets(self._context, REPLICATION_CONTROLLER),
            StatefulSets(self._context),
            DaemonSets(self._context),
            Jobs(self._context),
            GarbageCollector(self._context),
            Namespaces(self._context),
            DisruptionBudgets(self._context),
            NodeLifecycle(self._context, heartbeats),
            TaintEviction(self._context),
            DeviceTaintEviction(self._context),
            PodGarbage(self._context),
            Volumes(self._context),
            ResourceClaims(self._context),
            EventExpiry(self._context),
        )

    def start(self) -> None:
        """Takes up what there is already, and begins to work."""
        self._context.begin()
        self._task = asyncio.get_running_loop().create_task(self._context.work(), name="controllers")

    async def stop(self) -> None:
        self._context.stop()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def __aenter__(self) -> Controllers:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
