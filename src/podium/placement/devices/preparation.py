"""Prepares the requests of claims for the search: their classes, how many devices each needs, which all devices are."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from kubecel import DeviceSelectorError, compile_selector
from podium.kube.claims import not_found
from podium.kube.devices import (
    ALL,
    EXACT_COUNT,
    MOST_RESULTS,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelectorSpec,
    DeviceSubRequest,
    ResourceClaim,
)
from podium.kube.node import Node
from podium.kube.versions.devices import NEWEST, DeviceRules
from podium.placement.devices.capacity import Consumption, consumption
from podium.placement.devices.inventory import DevicePool, NodeDevices, OfferedDevice, PoolID, device_matches
from podium.placement.devices.tally import DeviceID, DeviceTally

NO_NODE: Final = Node()
NOTHING_IN_USE: Final = DeviceTally()
_MISSING_KEY_HINT = (
    "consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)


def never() -> bool:
    return False


class AllocationError(Exception):
    """Something that ends the whole attempt: no node is tried any more."""


@dataclass(eq=False)
class PreparedRequest:
    """A request, or one of the alternatives of a request, with what the search needs."""

    claim: ResourceClaim
    request: DeviceSubRequest
    name: str
    device_class: DeviceClass
    parent: str = ""
    count: int = 0
    every: list[OfferedDevice] | None = None
    rules: DeviceRules = NEWEST
    expired: Callable[[], bool] = never
    """Whether the time for a node is over: asked before selectors are evaluated and in their loops."""
    _selectable: dict[OfferedDevice, bool] = field(default_factory=dict)
    _consumption: dict[OfferedDevice, Consumption] = field(default_factory=dict)
    _unevaluated: dict[NodeDevices, list[int]] = field(default_factory=dict)
    _reopened: dict[NodeDevices, set[PoolID]] = field(default_factory=dict)
    _begin: dict[NodeDevices, int] = field(default_factory=dict)
    full: dict[PoolID, set[tuple[DevicePool, OfferedDevice]]] = field(default_factory=dict)
    """Devices that have too little capacity or counters left; to be forgotten when something of their pool changes.

    Nodes may see a pool in different ways while its slices change, and so count different devices as in use.
    """

    @cached_property
    def is_plain(self) -> bool:
        """Whether it asks for a number of devices as a whole, and for nothing else."""
        request = self.request
        return not self.parent and self.every is None and not request.admin_access and request.capacity is None

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def place(self) -> str:
        """How errors name it."""
        return f"claim {self.claim.key}, request {self.name}"

    def can_take(self, offered: OfferedDevice, node: Node) -> bool:
        """Whether the selectors and the device's own choice of nodes allow a device; AllocationError where unknown."""
        if not self.selects(offered):
            return False
        return not offered.slice.spec.per_device_node_selection or device_matches(node, offered.device)

    def selects(self, offered: OfferedDevice) -> bool:
        known = self._selectable.get(offered)
        if known is None:
            if self.expired():
                raise TimeoutError
            selectors = self.device_class.spec.selectors
            owner = f"class {self.device_class.name}"
            known = rejecting_selector(owner, selectors, offered, self.rules, self.expired) is None
            if known and self.request.selectors:
                owner = f"claim {self.claim.key}"
                known = rejecting_selector(owner, self.request.selectors, offered, self.rules, self.expired) is None
            self._selectable[offered] = known
        return known

    def consumption(self, offered: OfferedDevice) -> Consumption:
        """What the request consumes of a device."""
        known = self._consumption.get(offered)
        if known is None:
            known = consumption(offered.device.capacity, self.request.capacity, self.rules)
            self._consumption[offered] = known
        return known

    def checked_consumption(self, offered: OfferedDevice, device: object) -> Consumption:
        """What the request consumes of a device; AllocationError, which names it as `device`, where that is unknown."""
        found = self.consumption(offered)
        if found.problem:
            raise AllocationError(f"{self.place}: checking capacity for device {device}: {found.problem}")
        return found

    def begin(self, devices: NodeDevices) -> int:
        """The first place of which it is not known that its device is not selected or has too little left."""
        places, at = devices.places, self._begin.get(devices, 0)
        while at < len(places):
            pool, offered = both = places[at]
            if self._selectable.get(offered) is not False and both not in self.full.get(pool.id, ()):
                break
            at += 1
        self._begin[devices] = at
        return at

    def reopen(self, pool: PoolID) -> None:
        """Devices of a pool came into use, or no longer are."""
        self.full.pop(pool, None)
        for devices, at in self._begin.items():
            self._begin[devices] = min(at, devices.first_place(pool))
        for reopened in self._reopened.values():
            reopened.add(pool)

    def unevaluated(self, devices: NodeDevices, in_use: Container[DeviceID]) -> list[int]:
        """The places of devices that are not in use and that selectors have said nothing of yet, in order."""
        places, known, reopened = devices.places, self._selectable, self._reopened.setdefault(devices, set())
        left: Iterable[int] = self._unevaluated.get(devices, range(len(places)))
        if reopened:
            left = sorted({*left, *(place for pool in reopened for place in devices.places_of(pool))})
            reopened.clear()
        found = self._unevaluated[devices] = [
            place for place in left if places[place][1] not in known and places[place][1].id not in in_use
        ]
        return found


def rejecting_selector(
    owner: str,
    selectors: Sequence[DeviceSelectorSpec],
    offered: OfferedDevice,
    rules: DeviceRules,
    expired: Callable[[], bool] = never,
) -> int | None:
    """The number of the first selector that does not choose a device; AllocationError where one cannot tell."""
    for number, selector in enumerate(selectors):
        expression = selector.cel.expression if selector.cel else ""
        try:
            compile_selector(expression, durations_of_int=rules.durations_of_int)
        except DeviceSelectorError as error:
            raise AllocationError(f"{owner}: selector #{number}: CEL compile error: {error}") from None
        try:
            if not offered.selected_by(expression, expired):
                return number
        except DeviceSelectorError as error:
            problem = str(error)
            where = f" on device {offered.id}" if rules.errors_name_device else ""
            if rules.errors_name_device and "no such key:" in problem:
                problem = f"{problem}. {_MISSING_KEY_HINT}"
            raise AllocationError(f"{owner}: selector #{number}{where}: CEL runtime error: {problem}") from None
    return None


@dataclass(eq=False)
class PreparedClaim:
    """A claim with its requests in order, each as a list of alternatives, and the constraints between them."""

    claim: ResourceClaim
    requests: list[list[PreparedRequest]]
    rules: DeviceRules = NEWEST

    @property
    def constraints(self) -> tuple[DeviceConstraint, ...]:
        return self.claim.spec.devices.constraints


def asks_for_all(claims: Sequence[ResourceClaim]) -> bool:
    """Whether a request is for all devices there are: what that is, each node says."""
    return any(
        each.allocation_mode == ALL
        for claim in claims
        for request in claim.spec.devices.requests
        for each in (request.exactly, *request.first_available)
        if each is not None
    )


def prepare(
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    pools: Sequence[DevicePool] = (),
    node: Node = NO_NODE,
    tally: DeviceTally = NOTHING_IN_USE,
    expired: Callable[[], bool] = never,
    rules: DeviceRules = NEWEST,
) -> list[PreparedClaim]:
    """The claims ready for the search; AllocationError where one cannot be.

    Node, pools, tally and `expired` matter only where all devices are asked for; TimeoutError where that takes long.
    """
    return [_prepare_claim(claim, classes, rules, pools, node, tally, expired) for claim in claims]


def _prepare_claim(
    claim: ResourceClaim,
    classes: Mapping[str, DeviceClass],
    rules: DeviceRules,
    pools: Sequence[DevicePool],
    node: Node,
    tally: DeviceTally,
    expired: Callable[[], bool],
) -> PreparedClaim:
    requests = []
    needed = 0
    for request in claim.spec.devices.requests:
        prepared: list[PreparedRequest] = []
        for each in request.first_available or (request.exactly or DeviceSubRequest(),):
            one = _prepare_request(claim, request, each, classes, rules, expired)
            prepared.append(one)
            if each.allocation_mode == ALL:
                is_judged_by_first = len(prepared) == 2 and prepared[0].every is not None
                judge = prepared[0] if is_judged_by_first and not rules.alternatives_match_apart else one
                one.every = _all_devices(judge, one.place, pools, node, tally)
                one.count = len(one.every)
        requests.append(prepared)
        least = min(each.count for each in prepared)
        if rules.limit_by_request and needed + least > MOST_RESULTS:
            limit = f"exceeds the claim limit of {MOST_RESULTS}, with {needed} already accounted for"
            raise AllocationError(f"claim {claim.key}, request {request.name}: adding {least} devices {limit}")
        needed += least
    if needed > MOST_RESULTS:
        message = f"number of requested devices {needed} exceeds the claim limit of {MOST_RESULTS}"
        raise AllocationError(f"claim {claim.key}: {message}")
    for number, constraint in enumerate(claim.spec.devices.constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            message = "empty constraint (unsupported constraint type?)"
            raise AllocationError(f"claim {claim.key}, constraint #{number}: {message}")
    return PreparedClaim(claim, requests, rules)


def _prepare_request(
    claim: ResourceClaim,
    parent: DeviceRequest,
    request: DeviceSubRequest,
    classes: Mapping[str, DeviceClass],
    rules: DeviceRules,
    expired: Callable[[], bool],
) -> PreparedRequest:
    """The request without its devices, where it is for all of them."""
    name = request.name if parent.first_available else parent.name
    place = f"claim {claim.key}, request {name}"
    if rules.refuses_gated_fields and request.derived_attributes:
        message = "cannot handle request with derived attributes, the feature is disabled"
        raise AllocationError(f"{place}: {message}")
    for number, selector in enumerate(request.selectors):
        if selector.cel is None:
            message = "CEL expression empty (unsupported selector type?)"
            raise AllocationError(f"{place}, selector #{number}: {message}")
    if not request.device_class_name:
        raise AllocationError(f"{place}: missing device class name (unsupported request type?)")
    device_class = classes.get(request.device_class_name)
    if device_class is None:
        missing = not_found("deviceclass.resource.k8s.io", request.device_class_name)
        raise AllocationError(f"{place}: could not retrieve device class {request.device_class_name}: {missing}")
    parent_name = parent.name if parent.first_available else ""
    prepared = PreparedRequest(claim, request, name, device_class, parent_name, rules=rules, expired=expired)
    if request.allocation_mode == EXACT_COUNT:
        prepared.count = request.wanted
    elif request.allocation_mode != ALL:
        raise AllocationError(f"{prepared.place}: unsupported count mode {request.allocation_mode}")
    return prepared


def _all_devices(
    prepared: PreparedRequest, place: str, pools: Sequence[DevicePool], node: Node, tally: DeviceTally
) -> list[OfferedDevice]:
    found = []
    for pool in pools:
        if not pool.usable:
            state = "currently being updated" if pool.incomplete else "currently invalid"
            raise AllocationError(f"{place}: asks for all devices, but resource pool {pool} is {state}")
        for offered in pool.devices:
            if not prepared.can_take(offered, node):
                continue
            in_use = {} if prepared.rules.all_ignores_use else tally.consumed.get(offered.id, {})
            if prepared.checked_consumption(offered, offered.device.name).fits(in_use, {}):
                found.append(offered)
    return found
