"""Keeps what nodes answer to claims that ask for the same, from pod to pod.

What a node can give depends on the slices it sees, on which of their devices are in use, and on the device classes.
Giving a pod its devices changes the use of one pool, and so the answers of the nodes that see this pool: usually one.
Only these are searched again. Nodes that see the same slices, none of them made for one node, share an answer.

An error names the claim, so it is found again for each pod.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.kube import ResourceClaim
from podium.kube.devices import Allocation
from podium.placement.devices.inventory import NodeDevices
from podium.placement.devices.preparation import AllocationError, PreparedClaim, asks_for_all, prepare
from podium.placement.devices.search import InvalidPoolsError, Solution, search
from podium.placement.devices.uses import DeviceUses

UNKNOWN, GIVES, GIVES_NOTHING, CONTRADICTS = range(4)
"""What is known of a row: nothing yet, it has the devices, it has not, or its pools contradict themselves."""
MOST_ENTRIES = 128
MOST_ROWS = 1_000_000
"""Bounds on how many kinds of claims, and rows over all of them, answers are kept for."""

Codes = NDArray[np.int8]
Expired = Callable[[], bool]
_encode = msgspec.msgpack.Encoder().encode


class NodeAnswers:
    """What each node answers to claims of one kind, by row."""

    def __init__(self, cluster: Cluster, uses: DeviceUses) -> None:
        self._cluster = cluster
        self._uses = uses
        self._inventory: object = None
        self._classes_version = -1
        self._prepared: list[PreparedClaim] | None = None
        self._pools = uses.changed_pools.cursor()
        self._nodes = cluster.node_changes.cursor()
        self.codes: Codes = np.zeros(0, dtype=np.int8)
        self.errors: dict[int, str] = {}
        """Rows on which the search failed, for the claims that were asked about last."""
        self._solutions: dict[int, Solution] = {}
        self._rows_of: dict[NodeDevices, list[int]] = {}

    def refresh(self, claims: Sequence[ResourceClaim], limit: Callable[[], Expired]) -> None:
        """Ask about all rows that may answer otherwise than before; `limit` begins to measure the time of a search."""
        self._forget_changed()
        self.errors.clear()
        rows = np.flatnonzero((self.codes == UNKNOWN) & self._cluster.present).tolist()
        if not rows:
            return
        inventory, uses, nodes = self._uses.inventory, self._uses, self._cluster.nodes
        in_full = asks_for_all(claims)
        failure = ""
        if not in_full and self._prepared is None:
            try:
                self._prepared = prepare(claims, uses.classes)
            except AllocationError as error:
                failure = str(error)
        shared: dict[NodeDevices, tuple[int, Solution | None]] = {}
        for row in rows:
            node = nodes[row]
            if node is None or failure:
                self.errors[row] = failure
                continue
            devices = inventory.devices(node)
            answer = shared.get(devices)
            if answer is None:
                try:
                    expired = limit()
                    prepared = self._prepared or prepare(claims, uses.classes, devices.pools, node, uses.tally, expired)
                    found = search(node, devices, prepared, uses.tally, expired)
                    answer = GIVES_NOTHING if found is None else GIVES, found
                except InvalidPoolsError:
                    answer = CONTRADICTS, None
                except TimeoutError:
                    self.errors[row] = f"node {node.name}: timed out trying to allocate devices"
                    continue
                except AllocationError as error:
                    self.errors[row] = str(error)
                    continue
                if devices.same_everywhere:
                    shared[devices] = answer
            self.codes[row] = answer[0]
            if answer[1] is not None:
                self._solutions[row] = answer[1]
            self._rows_of.setdefault(devices, []).append(row)

    def _forget_changed(self) -> None:
        inventory, classes = self._uses.inventory, self._uses.classes_version
        pools, nodes = self._pools.read(), self._nodes.read()
        known = self._inventory is inventory and self._classes_version == classes
        if not known or pools is None or nodes is None or len(self.codes) != self._cluster.columns.rows:
            self._inventory, self._classes_version, self._prepared = inventory, classes, None
            self.codes = np.zeros(self._cluster.columns.rows, dtype=np.int8)
            self._solutions.clear()
            self._rows_of.clear()
            return
        for row in nodes:
            self._forget(row)
        for pool in dict.fromkeys(pools):
            for claim in self._prepared or ():
                for alternatives in claim.requests:
                    for request in alternatives:
                        request.reopen(pool)
            for devices in inventory.seeing(pool):
                for row in self._rows_of.pop(devices, ()):
                    self._forget(row)

    def _forget(self, row: int) -> None:
        self.codes[row] = UNKNOWN
        self._solutions.pop(row, None)

    def solution(self, row: int) -> Solution | None:
        return self._solutions.get(row)

    def allocations(self, row: int) -> list[Allocation] | None:
        """What the claims would get on a row."""
        found = self._solutions.get(row)
        return None if found is None else found.allocations(self._cluster.names[row])


class CachedNodeAnswers:
    """The answers to the kinds of claims that were asked for last."""

    def __init__(self, cluster: Cluster, uses: DeviceUses) -> None:
        self._cluster = cluster
        self._uses = uses
        self._entries: OrderedDict[tuple[bytes, ...], NodeAnswers] = OrderedDict()

    def of(self, claims: Sequence[ResourceClaim]) -> NodeAnswers:
        key = tuple([_encode(claim.spec) for claim in claims])
        found = self._entries.get(key)
        if found is None:
            found = self._entries[key] = NodeAnswers(self._cluster, self._uses)
            rows = max(1, self._cluster.columns.rows)
            while len(self._entries) > max(1, min(MOST_ENTRIES, MOST_ROWS // rows)):
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(key)
        return found
