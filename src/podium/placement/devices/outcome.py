"""Writes down what a claim was given: its devices, their configurations, and the nodes where they can be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from podium.kube.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.kube.devices import (
    Allocation,
    DeviceAllocation,
    DeviceAllocationConfiguration,
    DeviceRequestAllocation,
)
from podium.placement.devices.capacity import ConsumedAmount
from podium.placement.devices.inventory import OfferedDevice
from podium.placement.devices.preparation import PreparedClaim, PreparedRequest

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


@dataclass(eq=False)
class ChosenDevice:
    """A device that was chosen for a request; a share of it where it may be allocated several times."""

    request: PreparedRequest
    offered: OfferedDevice
    consumed: dict[str, ConsumedAmount] | None = None


def allocation(
    prepared: PreparedClaim,
    chosen: Sequence[ChosenDevice],
    picked: Sequence[int],
    node: str,
    new_share: Callable[[], str],
) -> Allocation:
    """What stands in the claim's status; `picked` is which alternative each request got."""
    requests = [alternatives[number] for alternatives, number in zip(prepared.requests, picked, strict=True)]
    return Allocation(
        devices=DeviceAllocation(
            results=tuple(_result(each, new_share) for each in chosen),
            config=_configurations(prepared, requests),
        ),
        node_selector=_node_selector(chosen, node),
    )


def _result(chosen: ChosenDevice, new_share: Callable[[], str]) -> DeviceRequestAllocation:
    device, request = chosen.offered, chosen.request
    return DeviceRequestAllocation(
        request=request.full_name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=request.request.admin_access,
        tolerations=request.request.tolerations,
        binding_conditions=device.device.binding_conditions,
        binding_failure_conditions=device.device.binding_failure_conditions,
        share_id=new_share() if device.device.allow_multiple_allocations else None,
        consumed_capacity={name: amount.text for name, amount in (chosen.consumed or {}).items()},
    )


def _configurations(
    prepared: PreparedClaim, requests: Sequence[PreparedRequest]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Those of the classes, then those of the claim; one that covers all requests names none from 1.37 on."""
    found = (*_class_configurations(requests), *_claim_configurations(prepared, requests))
    if not prepared.rules.configuration_once:
        return found
    return tuple(
        replace(each, requests=()) if all(_is_named(request, each.requests) for request in requests) else each
        for each in found
    )


def _is_named(request: PreparedRequest, names: Sequence[str]) -> bool:
    return (request.parent or request.name) in names or request.full_name in names


def _class_configurations(requests: Sequence[PreparedRequest]) -> list[DeviceAllocationConfiguration]:
    of_class: dict[str, list[str]] = {}
    for request in requests:
        of_class.setdefault(request.device_class.name, []).append(request.full_name)
    first = {request.device_class.name: request.device_class for request in reversed(requests)}
    return [
        DeviceAllocationConfiguration(source=FROM_CLASS, requests=tuple(names), opaque=configuration.opaque)
        for name, names in of_class.items()
        for configuration in first[name].spec.config
    ]


def _claim_configurations(
    prepared: PreparedClaim, requests: Sequence[PreparedRequest]
) -> list[DeviceAllocationConfiguration]:
    """Once each where no requests are named, else once, or before 1.37 once for every request that is."""
    found = []
    for configuration in prepared.claim.spec.devices.config:
        named = configuration.requests
        times = 1 if not named else sum(_is_named(each, named) for each in requests)
        if prepared.rules.configuration_once:
            times = min(times, 1)
        found += [DeviceAllocationConfiguration(source=FROM_CLAIM, requests=named, opaque=configuration.opaque)] * times
    return found


def _node_selector(chosen: Sequence[ChosenDevice], node: str) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in chosen:
        if each.offered.node_name is not None or each.offered.device.binds_to_node:
            name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
        selector = each.offered.node_selector
        for term in selector.node_selector_terms[:1] if selector else ():
            _add_new(term.match_fields, fields)
            _add_new(term.match_expressions, expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add_new(wanted: Sequence[NodeSelectorRequirement], known: list[NodeSelectorRequirement]) -> None:
    for each in wanted:
        same = (
            each.key == other.key and each.operator == other.operator and set(each.values) == set(other.values)
            for other in known
        )
        if not any(same):
            known.append(each)
