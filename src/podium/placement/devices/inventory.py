"""Groups slices into pools of devices, as each node sees them.

A node sees the slices made for it, and those without a node whose selection matches it; before Kubernetes 1.37 also
all with shared counters. Of a pool only the newest generation that the node sees counts. Where slices of a pool are
missing, all of the cluster's are looked at: a newer generation elsewhere makes the pool obsolete, and a wrong number of
slices makes it incomplete. A pool whose slices contradict each other is invalid. Pools with devices that need binding
conditions come last; otherwise the order is by driver and name, then by the slice's name, then as listed.

The taints of DeviceTaintRules are joined here to those that a slice gives its devices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from kubecel import AttributeValue, DeviceSelectorError, SelectableDevice, compile_selector, selectable, version
from kubecel.quantity import parse
from podium.kube.affinity import NodeSelector
from podium.kube.devices import Device, DeviceAttribute, DeviceTaint, DeviceTaintRule, ResourceSlice
from podium.kube.node import Node
from podium.kube.selector import NodeTerms, compile_node_selector
from podium.kube.versions.devices import NEWEST, DeviceRules
from podium.placement.devices.constraints import TypedValue, attribute_of, typed_value
from podium.placement.devices.tally import DeviceID

PoolID = tuple[str, str]
CounterName = tuple[str, str]
"""A counter set and a counter in it."""
_NodeChoice = NodeTerms | frozenset[tuple[str | None, bool, NodeTerms | None]] | None
"""Which nodes a slice chooses: all, those of a selector, or those that one of its devices chooses."""


@dataclass(eq=False)
class OfferedDevice:
    """A device with its slice, and what selectors were found to say of it."""

    id: DeviceID
    device: Device
    slice: ResourceSlice
    durations_of_int: bool = False
    _answers: dict[str, bool | str] = field(default_factory=dict)
    _answers_for_counting: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def whole(self) -> bool:
        """Whether the device goes to one claim with all its capacity."""
        policies = any(each.request_policy for each in self.device.capacity.values())
        return not (self.device.allow_multiple_allocations or policies)

    @cached_property
    def plain(self) -> bool:
        """Whether it goes so, and nothing else has to be looked at."""
        device = self.device
        chosen = self.slice.spec.per_device_node_selection
        return self.whole and not (device.consumes_counters or device.taints or chosen)

    @cached_property
    def counter_shares(self) -> tuple[tuple[CounterName, int], ...]:
        """What the device consumes of shared counters."""
        return tuple(
            ((consumption.counter_set, name), parse(counter.value))
            for consumption in self.device.consumes_counters
            for name, counter in consumption.counters.items()
        )

    @cached_property
    def _values(self) -> SelectableDevice:
        return self._selectable(multiple=self.device.allow_multiple_allocations)

    def _selectable(self, *, multiple: bool) -> SelectableDevice:
        attributes = {name: _value(name, each) for name, each in self.device.attributes.items()}
        capacity = {name: parse(each.value) for name, each in self.device.capacity.items()}
        return selectable(self.id.driver, attributes, capacity, multiple=multiple)

    def selected_by(self, expression: str, expired: Callable[[], bool] | None = None) -> bool:
        """Whether an expression selects the device; DeviceSelectorError where it cannot tell.

        TimeoutError where that takes until the time is over. What was interrupted is no answer to remember.
        """
        answer = self._answers.get(expression)
        if answer is None:
            selector = compile_selector(expression, durations_of_int=self.durations_of_int)
            try:
                answer = selector.matches(self._values, expired)
            except DeviceSelectorError as error:
                if error.interrupted:
                    raise
                answer = str(error)
            self._answers[expression] = answer
        if isinstance(answer, str):
            raise DeviceSelectorError(answer)
        return answer

    def selected_for_counting(self, expression: str) -> bool:
        """Whether an expression selects the device as one that can be allocated once."""
        if not self.device.allow_multiple_allocations:
            return self.selected_by(expression)
        answer = self._answers_for_counting.get(expression)
        if answer is None:
            values = self._selectable(multiple=False)
            selector = compile_selector(expression, durations_of_int=self.durations_of_int)
            answer = self._answers_for_counting[expression] = selector.matches(values)
        return answer

    @property
    def node_name(self) -> str | None:
        spec = self.slice.spec
        return self.device.node_name if spec.per_device_node_selection else spec.node_name

    @property
    def node_selector(self) -> NodeSelector | None:
        spec = self.slice.spec
        return self.device.node_selector if spec.per_device_node_selection else spec.node_selector


def _value(name: str, attribute: DeviceAttribute) -> AttributeValue:
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise DeviceSelectorError(f"attribute {name}: unsupported attribute value")
    try:
        return version(attribute.version_value)
    except ValueError as error:
        raise DeviceSelectorError(f"attribute {name}: {error}") from None


@dataclass(eq=False)
class DevicePool:
    """Devices that one driver offers under one name: those that a node can use, and those for other nodes."""

    id: PoolID
    devices: list[OfferedDevice] = field(default_factory=list)
    elsewhere: list[OfferedDevice] = field(default_factory=list)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    incomplete: bool = False
    invalid: bool = False

    @property
    def usable(self) -> bool:
        return not (self.incomplete or self.invalid)

    @cached_property
    def order(self) -> tuple[bool, PoolID]:
        """Pools are searched in this order."""
        return any(offered.device.binding_conditions for offered in self.devices), self.id

    def __str__(self) -> str:
        return "/".join(self.id)


class NodeDevices:
    """The pools that a node sees, in the order in which they are searched, and their devices in that order.

    Where many nodes see the same pools and each has some of its own, the former are their `common` devices.
    """

    def __init__(
        self, pools: Iterable[DevicePool], *, same_everywhere: bool, common: NodeDevices | None = None
    ) -> None:
        self.own_pools = sorted(pools, key=_order)
        self.common = common
        self.contradicts: bool = any(pool.invalid for pool in self.own_pools) or (
            common is not None and common.contradicts
        )
        self.same_everywhere = same_everywhere
        """Whether every node that sees these pools can use each of their devices as any other can."""
        self.common_places = 0
        """How many places from the first on are those of the common devices, too."""
        if common is not None:
            self.common_places = common.places_before(self.own_pools[0].order) if self.own_pools else len(common.places)
        self._places_by_value: dict[str, dict[TypedValue | None, list[int]]] = {}

    @cached_property
    def pools(self) -> list[DevicePool]:
        return self.own_pools if self.common is None else sorted([*self.common.pools, *self.own_pools], key=_order)

    @cached_property
    def places(self) -> list[tuple[DevicePool, OfferedDevice]]:
        return [(pool, offered) for pool in self.pools if pool.usable for offered in pool.devices]

    @cached_property
    def _first_places(self) -> dict[PoolID, int]:
        return {pool.id: place for place, (pool, _offered) in reversed(list(enumerate(self.places)))}

    def places_before(self, order: tuple[bool, PoolID]) -> int:
        """How many places come before a pool that is not one of these."""
        behind = islice(self.pools, bisect_left(self.pools, order, key=_order), None)
        return next((self.first_place(pool.id) for pool in behind if pool.usable and pool.devices), len(self.places))

    def first_place(self, pool: PoolID) -> int:
        """Where the devices of a pool begin; behind all others, where there are none of it."""
        return self._first_places.get(pool, len(self.places))

    def places_of(self, pool: PoolID) -> range:
        """Where the devices of a pool stand, one behind the other."""
        first = self.first_place(pool)
        return range(first, first + len(self.places[first][0].devices) if first < len(self.places) else first)

    def places_with(self, attribute: str, value: TypedValue) -> list[int]:
        """Where the devices stand among the places that have a value of an attribute."""
        known = self._places_by_value.get(attribute)
        if known is None:
            known = self._places_by_value[attribute] = {}
            for place, (_pool, offered) in enumerate(self.places):
                found = attribute_of(offered.device, offered.id, attribute)
                known.setdefault(None if found is None else typed_value(found), []).append(place)
        return known.get(value, [])


class _SeenInCommon(NamedTuple):
    """What nodes see that are chosen in the same ways: what each can use as any other can, and slices that they see
    each in its own way; and all these slices by pool."""

    common: NodeDevices
    for_some: list[ResourceSlice]
    slices: dict[PoolID, list[ResourceSlice]]


class _Offer(NamedTuple):
    """A slice, the taints that rules add to its devices, and these devices."""

    slice: ResourceSlice
    taints: dict[str, tuple[DeviceTaint, ...]]
    devices: list[OfferedDevice]


class DeviceInventory:
    """All slices of a cluster. Devices of slices that a previous inventory had too keep their answers."""

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        previous: DeviceInventory | None = None,
        *,
        rules: DeviceRules = NEWEST,
        taint_rules: Iterable[DeviceTaintRule] = (),
    ) -> None:
        self._rules = rules
        self._offered: dict[str, _Offer] = {}
        tainting = list(taint_rules) if rules.taint_rules else []
        self._on_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        self._of_pool: dict[PoolID, list[ResourceSlice]] = {}
        self._seen: dict[str, tuple[Node, NodeDevices]] = {}
        self._choices: dict[_NodeChoice, set[str]] = {}
        self._common: dict[tuple[_NodeChoice, ...], _SeenInCommon] = {}
        self._seeing: dict[PoolID, list[NodeDevices]] = {}
        before = previous._offered if previous and previous._rules == rules else {}
        for each in slices:
            if rules.refuses_gated_fields and _has_compatibility_groups(each):
                continue
            taints = _added_taints(each, tainting) if tainting else {}
            known = before.get(each.name)
            reusable = known is not None and known.slice is each and known.taints == taints
            self._offered[each.name] = known if known and reusable else _offer(each, taints, rules)
            self._of_pool.setdefault(_pool_id(each), []).append(each)
            everywhere = bool(each.spec.shared_counters) and not rules.counters_follow_nodes
            if not each.spec.node_name or everywhere:
                self._shared.append(each)
                choice = None if everywhere else _choice_of(each)
                self._choices.setdefault(choice, set()).add(each.name)
            else:
                self._on_node.setdefault(each.spec.node_name, []).append(each)

    def offered_to(self, node: Node) -> Iterable[OfferedDevice]:
        """The devices of all slices that are made for a node or for no node by name."""
        slices = (*self._on_node.get(node.name, ()), *self._shared)
        return (device for each in slices for device in self._offered[each.name].devices)

    def pools(self, node: Node) -> list[DevicePool]:
        """The pools of a node, in the order in which they are searched."""
        return self.devices(node).pools

    def devices(self, node: Node) -> NodeDevices:
        """What a node sees; the same object while nothing of it changes."""
        known = self._seen.get(node.name)
        if known is None or (known[0] is not node and self._shared and known[0].labels != node.labels):
            if known is not None:
                self._unregister(known[1])
            known = self._seen[node.name] = (node, self._seen_by(node))
        return known[1]

    def seeing(self, pool: PoolID) -> Sequence[NodeDevices]:
        """The devices of nodes that see a pool; for one of their common devices only these."""
        return self._seeing.get(pool, ())

    def _seen_by(self, node: Node) -> NodeDevices:
        choices = tuple(choice for choice in self._choices if _chooses(choice, node))
        known = self._common.get(choices)
        if known is None:
            known = self._common[choices] = self._seen_in_common(choices)
        common, for_some, slices = known
        own = self._on_node.get(node.name, ())
        if not own and not for_some:
            return common
        if any(_pool_id(each) in slices for each in own):
            everything = [*own, *(each for found in slices.values() for each in found)]
            return self._registered(NodeDevices(self._gathered(everything), same_everywhere=False))
        gathered = self._gathered((*own, *for_some))
        return self._registered(NodeDevices(gathered, same_everywhere=False, common=common if common.pools else None))

    def _seen_in_common(self, choices: tuple[_NodeChoice, ...]) -> _SeenInCommon:
        """What is the same for all nodes that are chosen in the same ways."""
        names = {name for choice in choices for name in self._choices[choice]}
        slices: dict[PoolID, list[ResourceSlice]] = {}
        for each in self._shared:
            if each.name in names:
                slices.setdefault(_pool_id(each), []).append(each)
        for_some = [each for found in slices.values() if any(map(_is_for_some, found)) for each in found]
        some = {_pool_id(each) for each in for_some}
        same = [each for identity, found in slices.items() if identity not in some for each in found]
        common = self._registered(NodeDevices(self._gathered(same), same_everywhere=True))
        return _SeenInCommon(common, for_some, slices)

    def _registered(self, devices: NodeDevices) -> NodeDevices:
        for pool in devices.own_pools:
            self._seeing.setdefault(pool.id, []).append(devices)
        return devices

    def _unregister(self, devices: NodeDevices) -> None:
        if not devices.same_everywhere:
            for pool in devices.own_pools:
                self._seeing[pool.id].remove(devices)

    def _gathered(self, relevant: Sequence[ResourceSlice]) -> list[DevicePool]:
        seen: dict[PoolID, list[ResourceSlice]] = {}
        for each in relevant:
            known = seen.setdefault(_pool_id(each), [])
            newest = known[0].spec.pool.generation if known else each.spec.pool.generation
            if each.spec.pool.generation > newest:
                known.clear()
            if each.spec.pool.generation >= newest:
                known.append(each)
        return [pool for identity, found in seen.items() if (pool := self._pool(identity, found)) is not None]

    def _pool(self, identity: PoolID, found: list[ResourceSlice]) -> DevicePool | None:
        """The pool; None where it is obsolete."""
        pool = found[0].spec.pool
        others: Sequence[ResourceSlice] = ()
        if len(found) != pool.resource_slice_count:
            everywhere = self._of_pool[identity]
            if any(each.spec.pool.generation > pool.generation for each in everywhere):
                return None
            same = [each for each in everywhere if each.spec.pool.generation == pool.generation]
            if len(same) != pool.resource_slice_count:
                return DevicePool(identity, incomplete=True)
            here = {each.name for each in found}
            others = [each for each in same if each.name not in here]
        return self._built(identity, sorted(found, key=lambda each: each.name), others)

    def _built(self, identity: PoolID, found: list[ResourceSlice], others: Sequence[ResourceSlice]) -> DevicePool:
        of_devices = [each for each in found if not each.spec.shared_counters]
        names = [device.name for each in of_devices for device in each.spec.devices]
        sets = [each for slice_ in (*found, *others) for each in slice_.spec.shared_counters]
        counters = {each.name: {name: parse(counter.value) for name, counter in each.counters.items()} for each in sets}
        contradicts = len(set(names)) < len(names) or len(counters) < len(sets)
        if contradicts or not _counters_known(counters, (*found, *others)):
            return DevicePool(identity, invalid=True)
        return DevicePool(
            identity,
            [device for each in of_devices for device in self._offered[each.name].devices],
            [device for each in others for device in self._offered[each.name].devices],
            counters,
        )


def _pool_id(each: ResourceSlice) -> PoolID:
    return each.spec.driver, each.spec.pool.name


def _offer(each: ResourceSlice, taints: dict[str, tuple[DeviceTaint, ...]], rules: DeviceRules) -> _Offer:
    driver, pool = _pool_id(each)
    devices = [
        OfferedDevice(
            DeviceID(driver, pool, device.name),
            _tainted(device, taints.get(device.name, ())),
            each,
            rules.durations_of_int,
        )
        for device in each.spec.devices
    ]
    return _Offer(each, taints, devices)


def _tainted(device: Device, taints: tuple[DeviceTaint, ...]) -> Device:
    return replace(device, taints=(*device.taints, *taints)) if taints else device


def _added_taints(each: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> dict[str, tuple[DeviceTaint, ...]]:
    """The taints of rules by device, in the order of the rules' names; a rule without a selector chooses no device."""
    chosen = [
        (rule.spec.device_selector.device, rule.spec.taint)
        for rule in sorted(rules, key=lambda rule: rule.name)
        if rule.spec.device_selector is not None
        and rule.spec.device_selector.driver in (None, each.spec.driver)
        and rule.spec.device_selector.pool in (None, each.spec.pool.name)
    ]
    found = {
        device.name: tuple(taint for name, taint in chosen if name in (None, device.name))
        for device in (each.spec.devices if chosen else ())
    }
    return {name: taints for name, taints in found.items() if taints}


def _has_compatibility_groups(each: ResourceSlice) -> bool:
    return any(use.compatibility_groups for device in each.spec.devices for use in device.consumes_counters)


def _is_for_some(each: ResourceSlice) -> bool:
    """Whether the devices of a slice may be had by some of the nodes only that see it, or are tied to one."""
    spec = each.spec
    return bool(spec.node_name or spec.per_device_node_selection) or any(each.binds_to_node for each in spec.devices)


def _order(pool: DevicePool) -> tuple[bool, PoolID]:
    return pool.order


def _choice_of(each: ResourceSlice) -> _NodeChoice:
    """How a slice chooses nodes that is not made for one of them by name."""
    spec = each.spec
    if spec.all_nodes:
        return None
    if spec.node_selector is not None:
        return compile_node_selector(spec.node_selector)
    devices = spec.devices if spec.per_device_node_selection else ()
    return frozenset(
        (
            device.node_name,
            device.all_nodes,
            None if device.node_selector is None else compile_node_selector(device.node_selector),
        )
        for device in devices
    )


def _chooses(choice: _NodeChoice, node: Node) -> bool:
    if choice is None:
        return True
    if isinstance(choice, NodeTerms):
        return choice.matches(node.labels, node.name)
    return any(
        node.name == name if name else every or (terms is not None and terms.matches(node.labels, node.name))
        for name, every, terms in choice
    )


def device_matches(node: Node, device: Device) -> bool:
    return node_matches(node, device.node_name, all_nodes=device.all_nodes, selector=device.node_selector)


def node_matches(node: Node, name: str | None, *, all_nodes: bool, selector: NodeSelector | None) -> bool:
    """Whether a node is chosen by name, as one of all, or by a selector."""
    if name:
        return node.name == name
    if all_nodes:
        return True
    return selector is not None and compile_node_selector(selector).matches(node.labels, node.name)


def _counters_known(counters: dict[str, dict[str, int]], slices: Iterable[ResourceSlice]) -> bool:
    for each in slices:
        for device in each.spec.devices:
            for consumption in device.consumes_counters:
                known = counters.get(consumption.counter_set)
                if known is None or any(name not in known for name in consumption.counters):
                    return False
    return True
