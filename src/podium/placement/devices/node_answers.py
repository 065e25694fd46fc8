"""Keeps what nodes answer to claims that ask for the same, from pod to pod.

What a node can give depends on the slices it sees, on which of their devices are in use, and on the device classes.
Giving a pod its devices changes the use of one pool, and so the answers of nodes whose search has looked at a device of
this pool: usually one. Only these are searched again. A search looks at devices in order and ends at the first
solution; pools behind that do not count.

Nodes that see the same slices, none of them made for one node, share an answer. So do nodes that also see slices of
their own, where the search has ended before it came to these.

An error names the claim, so it is found again for each pod.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Rows
from podium.kube import Node, ResourceClaim
from podium.kube.devices import Allocation
from podium.placement.devices.allocator import InvalidPoolsError, Solution, search
from podium.placement.devices.inventory import NodeDevices, PoolID
from podium.placement.devices.preparation import AllocationError, PreparedClaim, asks_for_all, prepare
from podium.placement.devices.uses import DeviceUses

UNKNOWN, GIVES, GIVES_NOTHING, CONTRADICTS = range(4)
"""What is known of a row: nothing yet, it has the devices, it has not, or its pools contradict themselves."""
TO_THE_END = sys.maxsize
"""How many places a search has looked at that more devices, too, would have made find something else."""
MOST_ENTRIES = 128
MOST_ROWS = 1_000_000
"""Bounds on how many kinds of claims, and rows over all of them, answers are kept for."""

Codes = NDArray[np.int8]
_encode = msgspec.msgpack.Encoder().encode
SHORT = 0.1
"""Seconds that a search may take in any case; one that takes no longer does not count for the others."""

Expired = Callable[[], bool]


class _Answer(NamedTuple):
    """What a search on some devices has found, and how many places from the first on it may have looked at."""

    code: int
    found: Solution | None
    looked_at: int


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
        self._devices: dict[int, NodeDevices] = {}
        """What each row sees."""
        self._answers: dict[NodeDevices, _Answer] = {}
        self._searched: dict[int, NodeDevices] = {}
        """The devices whose answer a row has: what it sees, or the common devices of that."""
        self._rows_of: dict[NodeDevices, set[int]] = {}

    def refresh(
        self,
        claims: Sequence[ResourceClaim],
        begin: Callable[[], Expired],
        choose: Callable[[Rows], Rows] = lambda rows: rows,
    ) -> None:
        """Ask those rows again that may answer otherwise than before; of these, what `choose` takes, in its order.

        `begin` begins to time a search. One that takes too long is the last: rows behind it fail, too.
        """
        self._forget_changed()
        self.errors.clear()
        unknown = np.flatnonzero((self.codes == UNKNOWN) & self._cluster.present)
        rows = choose(unknown).tolist() if len(unknown) else []
        if not rows:
            return
        in_full = asks_for_all(claims)
        if not in_full and self._prepared is None:
            try:
                self._prepared = prepare(claims, self._uses.classes, rules=self._uses.rules)
            except AllocationError as error:
                self.errors.update(dict.fromkeys(rows, str(error)))
                return
        answered: dict[NodeDevices, list[int]] = {}
        for position, row in enumerate(rows):
            devices = self._devices.get(row)
            if devices is None:
                devices = self._devices[row] = self._uses.inventory.devices(self._node(row))
            searched = self._known_for(devices)
            if searched is None:
                try:
                    answer = self._search(self._node(row), devices, claims, begin())
                except TimeoutError:
                    problem = f"node {self._cluster.names[row]}: timed out trying to allocate devices"
                    self.errors.update(dict.fromkeys(rows[position:], problem))
                    break
                except AllocationError as error:
                    self.errors[row] = str(error)
                    continue
                common = devices.common
                searched = devices if common is None or answer.looked_at > devices.common_places else common
                self._answers[searched] = answer
            answered.setdefault(searched, []).append(row)
        for searched, found in answered.items():
            self.codes[found] = self._answers[searched].code
            self._searched.update(dict.fromkeys(found, searched))
            self._rows_of.setdefault(searched, set()).update(found)

    def _node(self, row: int) -> Node:
        node = self._cluster.nodes[row]
        assert node is not None, "only rows that are present are asked about"
        return node

    def _known_for(self, devices: NodeDevices) -> NodeDevices | None:
        """The devices whose answer is that of a row which sees `devices`."""
        if devices in self._answers:
            return devices
        common = devices.common
        known = None if common is None else self._answers.get(common)
        return common if known is not None and known.looked_at <= devices.common_places else None

    def _search(self, node: Node, devices: NodeDevices, claims: Sequence[ResourceClaim], expired: Expired) -> _Answer:
        uses, prepared, looked_at = self._uses, self._prepared, 0
        if prepared is None:
            prepared = prepare(claims, uses.classes, devices.pools, node, uses.tally, expired, uses.rules)
            looked_at = TO_THE_END
        try:
            found = search(node, devices, prepared, uses.tally, expired)
        except InvalidPoolsError:
            return _Answer(CONTRADICTS, None, TO_THE_END)
        if found is None:
            return _Answer(GIVES_NOTHING, None, TO_THE_END)
        return _Answer(GIVES, found, max(looked_at, found.looked_at))

    def _forget_changed(self) -> None:
        inventory, classes = self._uses.inventory, self._uses.classes_version
        pools, nodes = self._pools.read(), self._nodes.read()
        known = self._inventory is inventory and self._classes_version == classes
        if not known or pools is None or nodes is None or len(self.codes) != self._cluster.columns.rows:
            self._inventory, self._classes_version, self._prepared = inventory, classes, None
            self.codes = np.zeros(self._cluster.columns.rows, dtype=np.int8)
            for known_before in (self._devices, self._answers, self._searched, self._rows_of):
                known_before.clear()
            return
        for row in nodes:
            self.codes[row] = UNKNOWN
            self._devices.pop(row, None)
        for pool in dict.fromkeys(pools):
            for claim in self._prepared or ():
                for alternatives in claim.requests:
                    for request in alternatives:
                        request.reopen(pool)
            for devices in inventory.seeing(pool):
                self._forget(devices, pool)
                if devices.same_everywhere:
                    for each in [each for each in self._answers if each.common is devices]:
                        self._forget(each, pool)

    def _forget(self, devices: NodeDevices, pool: PoolID) -> None:
        """Forget what a search has found, if it has looked at a device of a pool."""
        answer = self._answers.get(devices)
        if answer is not None and devices.first_place(pool) < answer.looked_at:
            del self._answers[devices]
            self.codes[list(self._rows_of.pop(devices, ()))] = UNKNOWN

    def solution(self, row: int) -> Solution | None:
        searched = self._searched.get(row)
        return None if searched is None or self.codes[row] != GIVES else self._answers[searched].found

    def allocations(self, row: int) -> list[Allocation] | None:
        """What the claims would get on a row."""
        found = self.solution(row)
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


class SearchTime:
    """The time that the searches of one attempt take; 0 seconds are no limit.

    A search on one node may take so many seconds, as in kube-scheduler, where the first node that takes longer fails
    the attempt. Searches that are not short also count together: all of them may take as many seconds again and no
    more, for while they run nothing else is decided.
    """

    def __init__(self, now: Callable[[], float], seconds: float) -> None:
        self._now = now
        self._seconds = seconds
        self._spent = 0.0
        self._began: float | None = None

    def begin(self) -> Expired:
        """Begin the next search; the answer says whether its time is over."""
        now, read = self._now(), self._now
        if self._seconds <= 0:
            return lambda: False
        if self._began is not None and now - self._began > SHORT:
            self._spent += now - self._began
        self._began = now
        end = now + max(SHORT, self._seconds - self._spent)
        return lambda: read() > end
