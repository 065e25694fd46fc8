"""Groups slices into pools of devices, as each node sees them.

A node sees the slices made for it, those without a node whose selection matches it, and all with shared counters. Of a
pool only the newest generation that the node sees counts. Where slices of a pool are missing, all of the cluster's are
looked at: a newer generation elsewhere makes the pool obsolete, and a wrong number of slices makes it incomplete. A
pool whose slices contradict each other is invalid. Pools with devices that need binding conditions come last;
otherwise the order is by driver and name, then by the slice's name, then as listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from podium.kube.affinity import NodeSelector
from podium.kube.cel import AttributeValue, DeviceSelectorError, SelectableDevice, compile_selector, selectable, version
from podium.kube.devices import Device, DeviceAttribute, ResourceSlice
from podium.kube.node import Node
from podium.kube.quantity import parse
from podium.kube.selector import compile_node_selector
from podium.placement.devices.constraints import TypedValue, attribute_of, typed_value
from podium.placement.devices.tally import DeviceID

PoolID = tuple[str, str]


@dataclass(eq=False)
class OfferedDevice:
    """A device with its slice, and what selectors were found to say of it."""

    id: DeviceID
    device: Device
    slice: ResourceSlice
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
            selector = compile_selector(expression)
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
            answer = self._answers_for_counting[expression] = compile_selector(expression).matches(values)
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

    def __str__(self) -> str:
        return "/".join(self.id)


class NodeDevices:
    """The pools that a node sees, in the order in which they are searched, and their devices in that order."""

    def __init__(self, pools: list[DevicePool], *, same_everywhere: bool) -> None:
        self.pools = pools
        self.places = [(pool, offered) for pool in pools if pool.usable for offered in pool.devices]
        self.contradicts = any(pool.invalid for pool in pools)
        self.same_everywhere = same_everywhere
        """Whether every node that sees these pools can use each of their devices as any other can."""
        self._places_by_value: dict[str, dict[TypedValue | None, list[int]]] = {}

    @cached_property
    def _first_places(self) -> dict[PoolID, int]:
        return {pool.id: place for place, (pool, _offered) in reversed(list(enumerate(self.places)))}

    def first_place(self, pool: PoolID) -> int:
        """Where the devices of a pool begin; behind all others, where there are none of it."""
        return self._first_places.get(pool, len(self.places))

    def places_with(self, attribute: str, value: TypedValue) -> list[int]:
        """Where the devices stand among the places that have a value of an attribute."""
        known = self._places_by_value.get(attribute)
        if known is None:
            known = self._places_by_value[attribute] = {}
            for place, (_pool, offered) in enumerate(self.places):
                found = attribute_of(offered.device, offered.id, attribute)
                known.setdefault(None if found is None else typed_value(found), []).append(place)
        return known.get(value, [])


class DeviceInventory:
    """All slices of a cluster. Devices of slices that a previous inventory had too keep their answers."""

    def __init__(self, slices: Iterable[ResourceSlice], previous: DeviceInventory | None = None) -> None:
        self._offered: dict[str, tuple[ResourceSlice, list[OfferedDevice]]] = {}
        self._on_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        self._of_pool: dict[PoolID, list[ResourceSlice]] = {}
        self._seen: dict[str, tuple[Node, NodeDevices]] = {}
        self._same_slices: dict[tuple[str, ...], NodeDevices] = {}
        self._seeing: dict[PoolID, list[NodeDevices]] = {}
        before = previous._offered if previous else {}
        for each in slices:
            known = before.get(each.name)
            self._offered[each.name] = known if known and known[0] is each else (each, _offer(each))
            self._of_pool.setdefault(_pool_id(each), []).append(each)
            if not each.spec.node_name or each.spec.shared_counters:
                self._shared.append(each)
            else:
                self._on_node.setdefault(each.spec.node_name, []).append(each)

    def offered_to(self, node: Node) -> Iterable[OfferedDevice]:
        """The devices of all slices that are made for a node or for no node by name."""
        slices = (*self._on_node.get(node.name, ()), *self._shared)
        return (device for each in slices for device in self._offered[each.name][1])

    def pools(self, node: Node) -> list[DevicePool]:
        """The pools of a node, in the order in which they are searched."""
        return self.devices(node).pools

    def devices(self, node: Node) -> NodeDevices:
        """What a node sees; the same object while nothing of it changes."""
        known = self._seen.get(node.name)
        if known is None or (known[0] is not node and (self._shared or known[0].labels != node.labels)):
            known = self._seen[node.name] = (node, self._seen_by(node))
        return known[1]

    def seeing(self, pool: PoolID) -> Sequence[NodeDevices]:
        """What nodes see that see a pool."""
        return self._seeing.get(pool, ())

    def _seen_by(self, node: Node) -> NodeDevices:
        own = self._on_node.get(node.name, ())
        relevant = [each for each in (*own, *self._shared) if _is_relevant(each, node)]
        same = not own and not any(_is_for_some(each) for each in relevant)
        names = tuple(each.name for each in relevant)
        found = self._same_slices.get(names) if same else None
        if found is None:
            found = NodeDevices(self._gathered(relevant), same_everywhere=same)
            for pool in found.pools:
                self._seeing.setdefault(pool.id, []).append(found)
            if same:
                self._same_slices[names] = found
        return found

    def _gathered(self, relevant: Sequence[ResourceSlice]) -> list[DevicePool]:
        seen: dict[PoolID, list[ResourceSlice]] = {}
        for each in relevant:
            known = seen.setdefault(_pool_id(each), [])
            newest = known[0].spec.pool.generation if known else each.spec.pool.generation
            if each.spec.pool.generation > newest:
                known.clear()
            if each.spec.pool.generation >= newest:
                known.append(each)
        pools = [pool for identity, found in seen.items() if (pool := self._pool(identity, found)) is not None]
        return sorted(pools, key=lambda pool: (_needs_conditions(pool), pool.id))

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
        sets = [each for slice_ in found for each in slice_.spec.shared_counters]
        counters = {each.name: {name: parse(counter.value) for name, counter in each.counters.items()} for each in sets}
        contradicts = len(set(names)) < len(names) or len(counters) < len(sets)
        if contradicts or not _counters_known(counters, (*found, *others)):
            return DevicePool(identity, invalid=True)
        return DevicePool(
            identity,
            [device for each in of_devices for device in self._offered[each.name][1]],
            [device for each in others for device in self._offered[each.name][1]],
            counters,
        )


def _pool_id(each: ResourceSlice) -> PoolID:
    return each.spec.driver, each.spec.pool.name


def _offer(each: ResourceSlice) -> list[OfferedDevice]:
    driver, pool = _pool_id(each)
    return [OfferedDevice(DeviceID(driver, pool, device.name), device, each) for device in each.spec.devices]


def _is_for_some(each: ResourceSlice) -> bool:
    """Whether the devices of a slice may be had by some of the nodes only that see it, or are tied to one."""
    spec = each.spec
    return bool(spec.node_name or spec.per_device_node_selection) or any(each.binds_to_node for each in spec.devices)


def _needs_conditions(pool: DevicePool) -> bool:
    return any(offered.device.binding_conditions for offered in pool.devices)


def _is_relevant(each: ResourceSlice, node: Node) -> bool:
    spec = each.spec
    if spec.shared_counters:
        return True
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return node_matches(node, spec.node_name, all_nodes=spec.all_nodes, selector=spec.node_selector)
    return spec.per_device_node_selection and any(device_matches(node, device) for device in spec.devices)


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
