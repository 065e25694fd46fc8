"""Searches for devices that satisfy all claims of a pod on one node: depth first, and the first solution wins.

Claims, their requests and the devices of a request are chosen in order. Inside a request each device comes after the
one before it, so no set of devices is tried twice; a new request starts again at the first device. Alternatives of a
request are tried in order, each with all that follows. When all devices are asked for, exactly these are taken or the
request fails. The order, and so the devices that are found, are those of kube-scheduler's allocator.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import uuid4

from podium.kube.devices import (
    MOST_RESULTS,
    Allocation,
    Device,
    DeviceClass,
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
)
from podium.kube.node import Node
from podium.kube.toleration import tolerates
from podium.kube.versions.devices import NEWEST, DeviceRules
from podium.placement.devices.capacity import ConsumedAmount, CounterBalance
from podium.placement.devices.constraints import ConstraintState
from podium.placement.devices.inventory import DevicePool, NodeDevices, OfferedDevice
from podium.placement.devices.outcome import ChosenDevice, allocation
from podium.placement.devices.preparation import (
    AllocationError,
    PreparedClaim,
    PreparedRequest,
    never,
    prepare,
)
from podium.placement.devices.tally import Consumed, DeviceID, DeviceTally, consume, release

CONTRADICTION = "invalid resource pools were encountered"
_EXCLUDING = ("NoSchedule", "NoExecute")


class InvalidPoolsError(Exception):
    """No solution on a node of which some pools contradict themselves."""


class _TooManyError(Exception):
    """A branch in which a claim would get more devices than it can have."""


class _TimedOutError(Exception):
    """A search that took too long."""


def _new_share() -> str:
    return str(uuid4())


def allocate(
    node: Node,
    pools: list[DevicePool],
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    tally: DeviceTally,
    *,
    rules: DeviceRules = NEWEST,
    expired: Callable[[], bool] = never,
    new_share: Callable[[], str] = _new_share,
) -> list[Allocation] | None:
    """What each claim gets on the node; None where there is no solution.

    AllocationError ends the attempt on all nodes, InvalidPoolsError and TimeoutError are about this one. `expired` says
    whether the time is over, `new_share` makes the identifier of a share.
    """
    prepared = prepare(claims, classes, pools, node, tally, expired, rules)
    found = search(node, NodeDevices(pools, same_everywhere=False), prepared, tally, expired)
    return None if found is None else found.allocations(node.name, new_share)


class Solution(NamedTuple):
    """The devices that claims get, and which alternative each of their requests was met by."""

    claims: Sequence[PreparedClaim]
    chosen: Sequence[Sequence[ChosenDevice]]
    picked: Sequence[Sequence[int]]
    looked_at: int
    """How many places, from the first on, the search may have looked at: what is behind them did not count."""

    def allocations(self, node_name: str, new_share: Callable[[], str] = _new_share) -> list[Allocation]:
        return [
            allocation(claim, chosen, picked, node_name, new_share)
            for claim, chosen, picked in zip(self.claims, self.chosen, self.picked, strict=True)
        ]


def search(
    node: Node,
    devices: NodeDevices,
    claims: Sequence[PreparedClaim],
    tally: DeviceTally,
    expired: Callable[[], bool] = never,
) -> Solution | None:
    """The first solution for claims that are prepared."""
    if expired():
        raise TimeoutError
    for claim in claims:
        for alternatives in claim.requests:
            for request in alternatives:
                request.expired = expired
    found, is_first = _first_free(devices, claims, tally)
    if found is None and not is_first:
        full = _Search(node, devices, claims, tally, expired)
        try:
            found = full.run()
        except _TimedOutError:
            raise TimeoutError from None
        except RecursionError:
            raise AllocationError(f"pod has {len(claims)} claims: too many devices to search for") from None
    if found is None and devices.contradicts:
        raise InvalidPoolsError(CONTRADICTION)
    return found


def _first_free(
    devices: NodeDevices, claims: Sequence[PreparedClaim], tally: DeviceTally
) -> tuple[Solution | None, bool]:
    """The first free devices for each request; and whether a search could find nothing else.

    Where requests are plain and nothing has to be tried twice, this is what the search would find.
    """
    in_use, taken = tally.dedicated, set[DeviceID]()
    chosen: list[list[ChosenDevice]] = []
    requests = looked_at = 0
    for claim in claims:
        if claim.constraints:
            return None, False
        of_claim: list[ChosenDevice] = []
        chosen.append(of_claim)
        for alternatives in claim.requests:
            request = alternatives[0]
            if not request.is_plain:
                return None, False
            requests += 1
            left = request.count
            for place, (_pool, offered) in enumerate(devices.places):
                if offered.id in in_use or offered.id in taken or not request.selects(offered):
                    continue
                if not offered.plain or offered.id in tally.consumed:
                    return None, False
                taken.add(offered.id)
                of_claim.append(ChosenDevice(request, offered))
                left -= 1
                if not left:
                    looked_at = max(looked_at, place + 1)
                    break
            if left:
                return None, requests == 1
    return Solution(claims, chosen, [[0] * len(claim.requests) for claim in claims], looked_at), True


@dataclass(eq=False)
class _Mark:
    """What was changed for a device that was taken."""

    claim: int
    pool: DevicePool
    offered: OfferedDevice
    request: PreparedRequest
    counted: bool
    dedicated: bool
    consumed: Consumed | None = None
    was_consumed: bool = False


class _Search:
    """The state of one search."""

    def __init__(
        self,
        node: Node,
        devices: NodeDevices,
        claims: Sequence[PreparedClaim],
        tally: DeviceTally,
        expired: Callable[[], bool],
    ) -> None:
        self._node = node
        self._claims = claims
        self._tally = tally
        self._expired = expired
        self._node_devices = devices
        self._places = devices.places
        self._pools = devices.pools
        self._constraints = [[ConstraintState(each, claim.rules) for each in claim.constraints] for claim in claims]
        self._counters = CounterBalance(tally)
        self._taken: dict[DeviceID, set[int]] = {}
        self._consumed: dict[DeviceID, Consumed] = {}
        self._chosen: list[list[ChosenDevice]] = [[] for _ in claims]
        self._picked: list[list[int]] = [[0] * len(claim.requests) for claim in claims]
        self._looked_at = 0

    def run(self) -> Solution | None:
        try:
            found = self._claim(0)
        except _TooManyError:
            return None
        return Solution(self._claims, self._chosen, self._picked, self._looked_at) if found else None

    @cached_property
    def _pool_of(self) -> dict[OfferedDevice, DevicePool]:
        return {offered: pool for pool in self._pools for offered in pool.devices}

    def _claim(self, claim: int) -> bool:
        return claim >= len(self._claims) or self._request(claim, 0)

    def _request(self, claim: int, number: int) -> bool:
        """Find devices for a request and all that follows."""
        if self._expired():
            raise _TimedOutError
        requests = self._claims[claim].requests
        if number >= len(requests):
            try:
                return self._claim(claim + 1)
            except _TooManyError:
                return False
        alternatives = requests[number]
        if not alternatives[0].parent:
            return self._devices(claim, number, alternatives[0], 0, 0)
        too_many = True
        for index, alternative in enumerate(alternatives):
            self._picked[claim][number] = index
            try:
                if self._devices(claim, number, alternative, 0, 0):
                    self._picked[claim][number] = index
                    return True
            except _TooManyError:
                continue
            too_many = False
        if too_many:
            raise _TooManyError
        return False

    def _devices(self, claim: int, number: int, request: PreparedRequest, index: int, start: int) -> bool:
        """Find the devices of a request from one index on, starting at a place, and all that follows."""
        if request.every is not None and not request.every:
            return False
        if index >= request.count:
            return self._request(claim, number + 1)
        if self._expired():
            raise _TimedOutError
        if len(self._chosen[claim]) + request.count - index > MOST_RESULTS:
            raise _TooManyError
        if request.every is not None:
            offered = request.every[index]
            mark = self._take(claim, request, self._pool_of[offered], offered, must=True)
            following = request if request.rules.alternatives_end_apart else self._claims[claim].requests[number][0]
            return mark is not None and self._or_undo(mark, claim, number, following, index, 0)
        constraints = self._constraints[claim]
        for place in self._candidates(claim, request, start):
            pool, offered = both = self._places[place]
            self._looked_at = max(self._looked_at, place + 1)
            if both in request.full.get(pool.id, ()) or self._is_in_use(claim, request, offered.id):
                continue
            if not request.can_take(offered, self._node):
                continue
            if not self._has_capacity(request, offered):
                if offered.id not in self._consumed:
                    request.full.setdefault(pool.id, set()).add(both)
                continue
            if constraints and self._is_barred(constraints, request, offered):
                continue
            mark = self._take(claim, request, pool, offered, must=False)
            if mark is not None and self._or_undo(mark, claim, number, request, index, place + 1):
                return True
        return False

    @staticmethod
    def _is_barred(constraints: Sequence[ConstraintState], request: PreparedRequest, offered: OfferedDevice) -> bool:
        """Whether a constraint keeps a device out, as far as can be said without trying it.

        A device that one constraint takes and a later one does not has an effect on one that forgets.
        """
        name, subrequest = request.parent or request.name, _subrequest(request)
        for each in constraints:
            if not each.allows(name, subrequest, offered.device, offered.id):
                return True
            if each.forgets(name, subrequest):
                return False
        return False

    def _candidates(self, claim: int, request: PreparedRequest, start: int) -> Sequence[int]:
        """The places to look at, from `start` on: all, or those with the value that a constraint has come to require.

        Those whose selectors were not evaluated yet are looked at all the same: an error may be found there.
        """
        name, subrequest = request.parent or request.name, _subrequest(request)
        for constraint in self._constraints[claim]:
            if constraint.forgets(name, subrequest):
                break
            required = constraint.required(name, subrequest)
            if required is not None:
                in_use: Container[DeviceID] = () if request.request.admin_access else self._tally.dedicated
                fitting = self._node_devices.places_with(*required)
                fitting = fitting[bisect_left(fitting, start) :]
                unevaluated = request.unevaluated(self._node_devices, in_use)
                if not unevaluated or unevaluated[-1] < start:
                    return fitting
                return sorted({*fitting, *unevaluated[bisect_left(unevaluated, start) :]})
        return range(max(start, request.begin(self._node_devices)), len(self._places))

    def _or_undo(self, mark: _Mark, claim: int, number: int, request: PreparedRequest, index: int, start: int) -> bool:
        """Go on behind a device; where that leads nowhere, give the device back."""
        try:
            if self._devices(claim, number, request, index + 1, start):
                return True
        except _TooManyError:
            self._undo(mark)
            raise
        self._undo(mark)
        return False

    def _is_in_use(self, claim: int, request: PreparedRequest, device: DeviceID) -> bool:
        if request.request.admin_access:
            return claim in self._taken.get(device, ())
        return device in self._tally.dedicated or bool(self._taken.get(device))

    def _has_capacity(self, request: PreparedRequest, offered: OfferedDevice) -> bool:
        if request.request.capacity is None and offered.whole and offered.id not in self._tally.consumed:
            return True
        in_use = self._tally.consumed.get(offered.id, {})
        being_allocated = self._consumed.get(offered.id, {})
        return request.checked_consumption(offered, offered.id).fits(in_use, being_allocated)

    def _take(
        self, claim: int, request: PreparedRequest, pool: DevicePool, offered: OfferedDevice, *, must: bool
    ) -> _Mark | None:
        """Take a device for a request, if it can be. Where it `must` be, a violated constraint ends everything."""
        shareable = offered.device.allow_multiple_allocations
        if self._is_in_use(claim, request, offered.id) and not (shareable and request.request.admin_access):
            return None
        shared_already = shareable and (
            offered.id in self._tally.consumed
            or offered.id in self._consumed
            or (request.rules.shares_count_as_use and offered.id in self._tally.shares)
        )
        counted = bool(offered.device.consumes_counters) and not shared_already
        if counted and not self._counters.take(pool, offered):
            if not self._counters.is_taken_from(pool):
                request.full.setdefault(pool.id, set()).add((pool, offered))
            return None
        mark = _Mark(claim, pool, offered, request, counted, dedicated=not shareable)
        if repelling_taints(offered.device, request.request.tolerations):
            self._release(mark, constraints=0)
            return None
        constraints = self._constraints[claim]
        for number, constraint in enumerate(constraints):
            if not constraint.add(request.parent or request.name, _subrequest(request), offered.device, offered.id):
                self._release(mark, constraints=number)
                if must:
                    message = f"cannot add device {offered.id} because a claim constraint would not be satisfied"
                    raise AllocationError(f"{request.place}: {message}")
                return None
        if not self._has_capacity(request, offered):
            self._release(mark, constraints=len(constraints))
            return None
        self._choose(mark)
        return mark

    def _choose(self, mark: _Mark) -> None:
        request = mark.request
        consumed: dict[str, ConsumedAmount] | None = None
        if mark.dedicated:
            self._taken.setdefault(mark.offered.id, set()).add(mark.claim)
        else:
            consumption = request.consumption(mark.offered)
            consumed, mark.consumed = consumption.amounts, consumption.nano
            mark.was_consumed = mark.offered.id in self._consumed
            consume(self._consumed, mark.offered.id, mark.consumed)
        self._chosen[mark.claim].append(ChosenDevice(request, mark.offered, consumed))

    def _undo(self, mark: _Mark) -> None:
        self._chosen[mark.claim].pop()
        if mark.dedicated:
            self._taken[mark.offered.id].discard(mark.claim)
        if mark.consumed is not None:
            release(self._consumed, mark.offered.id, mark.consumed)
            if mark.was_consumed:
                self._consumed.setdefault(mark.offered.id, {})
        self._release(mark, constraints=len(self._constraints[mark.claim]))

    def _release(self, mark: _Mark, *, constraints: int) -> None:
        """Take back what the constraints and the counters noted."""
        request = mark.request
        for constraint in reversed(self._constraints[mark.claim][:constraints]):
            constraint.remove(request.parent or request.name, _subrequest(request))
        if mark.counted:
            self._counters.give_back(mark.pool, mark.offered)


def _subrequest(request: PreparedRequest) -> str:
    return request.name if request.parent else ""


def repelling_taints(device: Device, tolerations: Sequence[DeviceToleration]) -> list[DeviceTaint]:
    """The taints that keep a request from a device."""
    return [
        taint
        for taint in device.taints
        if taint.effect in _EXCLUDING and not any(tolerates(each, taint) for each in tolerations)
    ]
