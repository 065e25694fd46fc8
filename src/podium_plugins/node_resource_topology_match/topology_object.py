"""Reads NodeResourceTopology objects (topology.node.k8s.io/v1alpha2), whatever state they are in.

An agent on each node writes what every NUMA zone has available. Only zones of type Node count, named node-0 to node-63.
What cannot be read is left out and reported: a zone without a usable name, a resource whose `available` is missing or
is no quantity (the zone then does not list it), an unknown policy. A negative amount counts as 0.

How the kubelet of the node aligns resources (`ManagerSettings`) is found in this order:

    start                    scope container, policy none, at most 8 NUMA nodes
    topologyPolicies[0]      the deprecated form: policy and scope in one word
    attributes               topologyManagerPolicy, topologyManagerScope, topologyManagerMaxNUMANodes; they win

Attributes count in their order, so that the last valid value of a name is in force. A value that is not known is left
out, and reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from podium.kube import CPU, MILLI, NANO, QuantityError, parse_quantity

SINGLE_NUMA_NODE: Final = "single-numa-node"
POLICIES: Final = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
SCOPES: Final = ("container", "pod")
MOST_NUMA_NODES: Final = 1024

SCOPE: Final = "topologyManagerScope"
POLICY: Final = "topologyManagerPolicy"
MAX_NUMA_NODES: Final = "topologyManagerMaxNUMANodes"

LEGACY: Final = {
    f"{word}{scope.capitalize()}Level": (policy, scope)
    for word, policy in (
        ("SingleNUMANode", SINGLE_NUMA_NODE),
        ("BestEffort", "best-effort"),
        ("Restricted", "restricted"),
    )
    for scope in SCOPES
}
_WANTED: Final = {
    POLICY: f"one of {', '.join(POLICIES)}",
    SCOPE: f"one of {', '.join(SCOPES)}",
    MAX_NUMA_NODES: "a whole number above 1",
}
UNCHANGED: Final = ("None", "BestEffort", "Restricted")
"""Other words of the deprecated form, which change nothing."""


class ManagerSettings(NamedTuple):
    """The Topology Manager settings of a kubelet."""

    policy: str = "none"
    scope: str = "container"
    max_numa_nodes: int = 8

    @property
    def aligns(self) -> bool:
        """Whether a pod that fits no zone is turned away by the kubelet for certain."""
        return self.policy == SINGLE_NUMA_NODE

    @property
    def by_pod(self) -> bool:
        return self.scope == "pod"


_WHOLE: Final = re.compile(r"\+?[0-9]+")
_LARGEST: Final = (1 << 63) - 1


def read_settings(
    policies: Sequence[Any], attributes: Iterable[tuple[str, str]], problems: list[str]
) -> ManagerSettings:
    """The settings in force; what is wrong is added to `problems`."""
    policy, scope, most = ManagerSettings()
    word = policies[0] if policies else None
    if word is not None:
        if isinstance(word, str) and word in LEGACY:
            policy, scope = LEGACY[word]
        elif word not in UNCHANGED:
            problems.append(f'topologyPolicies[0]: "{word}" is not a known policy and is ignored')
    for name, value in attributes:
        if name == POLICY and value in POLICIES:
            policy = value
        elif name == SCOPE and value in SCOPES:
            scope = value
        elif name == MAX_NUMA_NODES and (number := _whole_number(value)) > 1:
            most = min(number, MOST_NUMA_NODES)
        elif name in _WANTED:
            problems.append(f'attribute {name}: "{value}" is ignored; it must be {_WANTED[name]}')
    return ManagerSettings(policy, scope, most)


def _whole_number(text: str) -> int:
    """A number as Go reads it; 0 where there is none, or none of 64 bits."""
    number = int(text) if len(text) <= 40 and _WHOLE.fullmatch(text) else 0
    return number if number <= _LARGEST else 0


RESOURCE: Final = "noderesourcetopologies.topology.node.k8s.io"
VERSION: Final = "v1alpha2"
FINGERPRINT: Final = "nodeTopologyPodsFingerprint"
FINGERPRINT_METHOD: Final = "nodeTopologyPodsFingerprintMethod"
WITH_EXCLUSIVE: Final = "with-exclusive-resources"
FINGERPRINT_ANNOTATION: Final = "topology.node.k8s.io/fingerprint"

MOST: Final = 1 << 53
"""Amounts above this count as this, so that they are exact as floats, and a hundred times one fits 64 bits."""
NO_COST: Final = 255
"""The distance between zones that do not say."""
LARGEST_COST: Final = 1 << 20

MOST_ZONES: Final = 64
_NUMBER_OF: Final = {f"node-{number}": number for number in range(MOST_ZONES)}


class NumaZone(NamedTuple):
    """One NUMA zone: what it has available by resource (cpu in thousandths), and its distances by zone number."""

    number: int
    available: dict[str, int]
    costs: dict[int, int]


class NodeTopology(NamedTuple):
    """What scheduling reads of one NodeResourceTopology; the zones in the order of their numbers."""

    settings: ManagerSettings
    zones: tuple[NumaZone, ...]
    fingerprint: str
    annotated: bool
    """The fingerprint stands in the annotation, which agents wrote before there was an attribute."""
    says_exclusive: bool
    """The fingerprint covers only pods with exclusive resources, as the report says itself."""
    problems: tuple[str, ...]


def read_topology(item: Any) -> NodeTopology:
    """A NodeResourceTopology from the API's data. Several ask about one after the other, so the last is at hand."""
    global _latest  # noqa: PLW0603  (what several ask for in a row)
    if _latest[0] is not item or item is None:
        _latest = item, _read(item if isinstance(item, dict) else {})
    return _latest[1]


def _read(item: Mapping[str, Any]) -> NodeTopology:
    problems: list[str] = []
    attributes = read_attributes(item)
    policies = item.get("topologyPolicies")
    settings = read_settings(policies if isinstance(policies, list) else (), _attributes(item), problems)
    zones = tuple(_zones(item, problems))
    if not zones:
        problems.append("it has no usable zone; have the agent report zones of type Node named node-0, node-1, …")
    annotated = FINGERPRINT not in attributes
    return NodeTopology(
        settings,
        zones,
        _annotation(item) if annotated else attributes[FINGERPRINT],
        annotated,
        attributes.get(FINGERPRINT_METHOD) == WITH_EXCLUSIVE,
        tuple(problems),
    )


_latest: tuple[Any, NodeTopology] = None, NodeTopology(ManagerSettings(), (), "", True, False, ())
"""The object that was read last, and what it says."""


def read_attributes(holder: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of an object or of a zone, by name; of several with one name the first."""
    found: dict[str, str] = {}
    for name, value in _attributes(holder):
        found.setdefault(name, value)
    return found


def _attributes(holder: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in _entries(holder, "attributes"):
        name, value = each.get("name"), each.get("value")
        if isinstance(name, str) and isinstance(value, str):
            yield name, value


def zone_entries(item: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The number of every usable zone, and what was written of it; of several with one number the first."""
    seen: set[int] = set()
    for entry in _entries(item if isinstance(item, dict) else {}, "zones"):
        number = _number(entry)
        if entry.get("type") == "Node" and number is not None and number not in seen:
            seen.add(number)
            yield number, entry


def amount_of(name: str, amount: Any) -> int:
    """An amount in the units of columns, rounded down; raises QuantityError."""
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        raise QuantityError("it is not a quantity")
    return max(0, min(MOST, parse_quantity(amount) // (MILLI if name == CPU else NANO)))


def listed_resources(item: Any) -> frozenset[str]:
    """The resources that some zone lists, of whatever type and name it is."""
    zones = _entries(item if isinstance(item, dict) else {}, "zones")
    return frozenset(resource["name"] for zone in zones for resource in resource_entries(zone))


def resource_entries(zone: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What was written of each resource that has a name."""
    return (each for each in _entries(zone, "resources") if isinstance(each.get("name"), str) and each["name"])


def _zones(item: Mapping[str, Any], problems: list[str]) -> list[NumaZone]:
    seen: set[int] = set()
    for entry in _entries(item, "zones"):
        number = _number(entry) if entry.get("type") == "Node" else None
        if number is not None:
            if number in seen:
                problems.append(f"zone {entry['name']} is there twice; the first counts")
            seen.add(number)
        elif entry.get("type") == "Node":
            problems.append(
                f'zone "{entry.get("name")}" is left out; zones of type Node must be named node-0 to '
                f"node-{MOST_ZONES - 1}"
            )
    found = [
        NumaZone(number, _available(entry, problems), _costs(entry, problems)) for number, entry in zone_entries(item)
    ]
    return sorted(found, key=lambda zone: zone.number)


def _available(entry: Mapping[str, Any], problems: list[str]) -> dict[str, int]:
    available: dict[str, int] = {}
    for resource in resource_entries(entry):
        name, amount = resource["name"], resource.get("available")
        where = f"zone {entry['name']}: resource {name}"
        try:
            available[name] = amount_of(name, amount)
            if parse_quantity(amount) < 0:
                problems.append(f"{where}: available is {amount}, which counts as 0")
        except QuantityError as error:
            what = "has no available amount" if amount is None else f"available: {error}"
            problems.append(f"{where} {what}; the zone counts as not having it")
    if not available:
        problems.append(f"zone {entry['name']} has no resources")
    return available


def _costs(entry: Mapping[str, Any], problems: list[str]) -> dict[int, int]:
    costs: dict[int, int] = {}
    for cost in _entries(entry, "costs"):
        number, value = _number(cost), cost.get("value")
        if number is None or isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_COST:
            problems.append(f"zone {entry['name']}: a cost is left out: {dict(cost)}")
        else:
            costs[number] = value
    return costs


def _number(entry: Mapping[str, Any]) -> int | None:
    name = entry.get("name")
    return _NUMBER_OF.get(name) if isinstance(name, str) else None


def _entries(holder: Mapping[str, Any], field: str) -> Iterator[Mapping[str, Any]]:
    listed = holder.get(field)
    return (each for each in listed if isinstance(each, dict)) if isinstance(listed, list) else iter(())


def _annotation(item: Mapping[str, Any]) -> str:
    metadata = item.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(FINGERPRINT_ANNOTATION) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""
