"""Says for people what each request of a pod's claims finds on which node, and what rejects the other devices.

A line for each request says how many devices match in all, and how many of them would do now; below it stand the nodes,
those with most devices that would do first. Nodes with the same answer share a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from podium.kube import Node, ResourceClaim
from podium.kube.devices import (
    ALL,
    DeviceAttribute,
    DeviceConstraint,
    DeviceSelectorSpec,
    DeviceSubRequest,
    DeviceTaint,
)
from podium.placement.devices import AllocationError, DeviceID, DevicePool
from podium.placement.devices.allocator import repelling_taints
from podium.placement.devices.capacity import CounterBalance
from podium.placement.devices.constraints import attribute_of
from podium.placement.devices.inventory import OfferedDevice, device_matches
from podium.placement.devices.preparation import PreparedRequest, rejecting_selector
from podium.placement.devices.uses import DeviceUses

MOST_LINES = 5
"""Different answers of nodes that are shown for a request."""
MOST_NAMES = 3
"""Nodes or claims that are named in a line."""

Holders = Mapping[DeviceID, Sequence[str]]
"""The claims that each device is given to."""


class _Found(NamedTuple):
    """What a request finds on a node: the devices there are, those that match, those that would do, and a sentence."""

    devices: frozenset[OfferedDevice]
    matching: frozenset[OfferedDevice]
    usable: frozenset[OfferedDevice]
    text: str


def availability(claim: ResourceClaim, nodes: Sequence[Node], uses: DeviceUses, holders: Holders) -> list[str]:
    """What the requests of a claim without devices find, and how its constraints divide that."""
    lines, found_by = [], {}
    for name, request in _requests(claim):
        place = f"claim {claim.key}, request {name}"
        device_class = uses.classes.get(request.device_class_name)
        if device_class is None:
            lines.append(f"{place}: device class {request.device_class_name} does not exist")
            continue
        prepared = PreparedRequest(claim, request, name, device_class)
        try:
            found = found_by[name] = {node.name: _find(prepared, node, uses, holders) for node in nodes}
        except AllocationError as error:
            lines.append(f"{place}: {error}")
            continue
        number = "all devices" if request.allocation_mode == ALL else str(request.wanted)
        lines.append(f"{place}: wants {number} of class {device_class.name}; {_in_all(found.values())}")
        lines += _by_node({node: (each.text, len(each.usable)) for node, each in found.items()})
    for index, constraint in enumerate(claim.spec.devices.constraints):
        lines += _divided(claim, index, constraint, found_by)
    return lines


def _requests(claim: ResourceClaim) -> Iterator[tuple[str, DeviceSubRequest]]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.name, request.exactly
        yield from ((f"{request.name}/{each.name}", each) for each in request.first_available)


def _in_all(nodes: Collection[_Found]) -> str:
    devices, matching, usable = (
        len({each for node in nodes for each in found(node)})
        for found in (attrgetter("devices"), attrgetter("matching"), attrgetter("usable"))
    )
    where = sum(bool(node.matching) for node in nodes)
    return f"of {devices} devices {matching} match, on {where} node{'' if where == 1 else 's'}; {usable} would do"


def _by_node(answers: Mapping[str, tuple[str, int]]) -> list[str]:
    """A line for each answer that nodes give, those with most devices that would do first."""
    names: dict[tuple[str, int], list[str]] = {}
    for name, answer in answers.items():
        names.setdefault(answer, []).append(name)
    ordered = sorted(names, key=lambda answer: -answer[1])
    lines = [f"  {listed(names[answer])}: {answer[0]}" for answer in ordered[:MOST_LINES]]
    rest = sum(len(names[answer]) for answer in ordered[MOST_LINES:])
    return [*lines, f"  {rest} more nodes, with no more devices that would do"] if rest else lines


def _divided(
    claim: ResourceClaim, number: int, constraint: DeviceConstraint, found_by: Mapping[str, Mapping[str, _Found]]
) -> list[str]:
    """The values that the devices which would do have of a constraint's attribute, node by node."""
    attribute = constraint.match_attribute or constraint.distinct_attribute or ""
    kind = "the same" if constraint.match_attribute else "another"
    named = [name for name in found_by if _concerns(constraint, name)]
    usable: dict[str, set[OfferedDevice]] = {}
    for name in named:
        for node, found in found_by[name].items():
            usable.setdefault(node, set()).update(found.usable)
    answers = {}
    for node, devices in usable.items():
        values = Counter(_value_text(attribute_of(each.device, each.id, attribute)) for each in devices)
        if values:
            answers[node] = "; ".join(f"{times} with {value}" for value, times in sorted(values.items())), len(devices)
    head = f"claim {claim.key}, constraint #{number}: wants {kind} {attribute} on each device of {', '.join(named)}"
    return [head, *_by_node(answers)] if answers else []


def _concerns(constraint: DeviceConstraint, name: str) -> bool:
    request, _, _alternative = name.partition("/")
    return not constraint.requests or bool({name, request} & {*constraint.requests})


def _value_text(attribute: DeviceAttribute | None) -> str:
    if attribute is None:
        return "no value"
    values = (attribute.int_value, attribute.bool_value, attribute.string_value, attribute.version_value)
    value = next((value for value in values if value is not None), "no value")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _find(prepared: PreparedRequest, node: Node, uses: DeviceUses, holders: Holders) -> _Found:
    devices, matching, usable = set(), set(), set()
    rejected: Counter[str] = Counter()
    unusable = []
    counters = CounterBalance(uses.tally)
    for pool in uses.inventory.pools(node):
        if not pool.usable:
            unusable.append(f"pool {pool} {'lacks slices' if pool.incomplete else 'contradicts itself'}")
        for each in pool.devices:
            devices.add(each)
            why = _mismatch(prepared, each, node)
            if why is None:
                matching.add(each)
                why = _hindrance(prepared, pool, each, uses, holders, counters)
            if why is None:
                usable.add(each)
            else:
                rejected[why] += 1
    reasons = [*(f"{number} {why}" for why, number in rejected.most_common()), *unusable]
    text = f"{len(usable)} of {len(devices)} devices would do" if devices else "no devices"
    return _Found(frozenset(devices), frozenset(matching), frozenset(usable), "; ".join([text, *reasons]))


def _mismatch(prepared: PreparedRequest, offered: OfferedDevice, node: Node) -> str | None:
    """Why a device is not of the kind that is asked for."""
    device_class = prepared.device_class
    number = rejecting_selector(f"class {device_class.name}", device_class.spec.selectors, offered, prepared.rules)
    if number is not None:
        return _rejected_by(f"class {device_class.name}", number, device_class.spec.selectors)
    number = rejecting_selector(f"claim {prepared.claim.key}", prepared.request.selectors, offered, prepared.rules)
    if number is not None:
        return _rejected_by("the request", number, prepared.request.selectors)
    if offered.slice.spec.per_device_node_selection and not device_matches(node, offered.device):
        return "for other nodes"
    return None


def _rejected_by(owner: str, number: int, selectors: Sequence[DeviceSelectorSpec]) -> str:
    selector = selectors[number].cel
    return f"rejected by selector #{number} of {owner} ({' '.join(selector.expression.split()) if selector else ''})"


def _hindrance(
    prepared: PreparedRequest,
    pool: DevicePool,
    offered: OfferedDevice,
    uses: DeviceUses,
    holders: Holders,
    counters: CounterBalance,
) -> str | None:
    """Why a device that matches cannot be had now."""
    request, device = prepared.request, offered.device
    taints = repelling_taints(device, request.tolerations)
    if taints:
        return f"with the taint {' and '.join(map(taint_text, taints))}"
    if offered.id in uses.tally.dedicated and not request.admin_access:
        return f"in use by claim {listed(holders.get(offered.id, ('being bound',)))}"
    if not prepared.consumption(offered).fits(uses.tally.consumed.get(offered.id, {}), {}):
        return "without enough capacity left"
    if device.consumes_counters and not uses.tally.is_allocated(offered.id):
        if not counters.take(pool, offered):
            return "whose pool has too little left of what its devices share"
        counters.give_back(pool, offered)
    return None


def taint_text(taint: DeviceTaint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
