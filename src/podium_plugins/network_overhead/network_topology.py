"""Reads a NetworkTopology (networktopology.diktyo.x-k8s.io): what it costs to get from zone to zone, region to region.

An object has several weights, each a table under a name: `UserDefined` is written by people, `NetperfCosts` by a
controller that measures. A cost below 0 or above a thousand million does not count, so that the pair has no known cost;
of a pair that is listed twice the last counts. An object that cannot be read counts as not there. All is reported on
the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from podium import FieldError, FieldPath, Handle, custom_reference
from podium_plugins.app_group import listed

DEFAULT_NAMESPACES: Final = ("default",)
USER_DEFINED: Final = "UserDefined"
DEFAULT_TOPOLOGY: Final = "nt-default"


class NetworkOverheadArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Where the objects of NetworkOverhead are, and which costs count."""

    namespaces: tuple[str, ...] = DEFAULT_NAMESPACES
    """Where AppGroups and the NetworkTopology are looked for, in this order."""
    weights_name: str = USER_DEFINED
    """Which of the weights of the NetworkTopology count: UserDefined, NetperfCosts (measured), or any other."""
    network_topology_name: str = DEFAULT_TOPOLOGY

    def __post_init__(self) -> None:
        for name, default in (
            ("namespaces", DEFAULT_NAMESPACES),
            ("weights_name", USER_DEFINED),
            ("network_topology_name", DEFAULT_TOPOLOGY),
        ):
            if not getattr(self, name):
                msgspec.structs.force_setattr(self, name, default)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for number, namespace in enumerate(self.namespaces):
            if not namespace:
                at = path.child("namespaces").index(number)
                yield FieldError.required(at, "name a namespace in which AppGroups and the NetworkTopology are")


API_VERSION: Final = "networktopology.diktyo.x-k8s.io/v1alpha1"
RESOURCE: Final = "networktopologies.networktopology.diktyo.x-k8s.io"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
HIGHEST_COST: Final = 10**9
"""Sums of higher costs over many pods might not fit into 64 bits."""
INVALID: Final = "InvalidNetworkTopology"
"""The reason of events on NetworkTopologies."""


class _Cost(msgspec.Struct, frozen=True, rename="camel"):
    destination: str
    network_cost: int


class _Origin(msgspec.Struct, frozen=True, rename="camel"):
    origin: str
    cost_list: tuple[_Cost, ...] = ()


class _Topology(msgspec.Struct, frozen=True, rename="camel"):
    topology_key: str
    origin_list: tuple[_Origin, ...] = ()


class _Weights(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    topology_list: tuple[_Topology, ...] = ()


class _Spec(msgspec.Struct, frozen=True):
    weights: tuple[_Weights, ...] = ()


Costs = dict[str, dict[str, int]]
"""Destination → origin → cost."""


class CostTable(msgspec.Struct):
    """What it costs to get from zone to zone, and from region to region."""

    zones: Costs
    regions: Costs


class NetworkTopologies:
    """The cost table that counts: of the named weights, in the named object, in the first namespace that has it."""

    def __init__(self, handle: Handle, args: NetworkOverheadArgs) -> None:
        self._args = args
        self._keys = [f"{namespace}/{args.network_topology_name}" for namespace in args.namespaces]
        self._handle = handle
        self._reported = False
        self._tables: dict[str, CostTable] = {}
        self.version = 0
        """Moves whenever a table does."""
        handle.cluster.objects.custom_store(RESOURCE).follow(self._changed)

    def table(self) -> CostTable | None:
        """The table; None where there is none, which is reported."""
        for key in self._keys:
            found = self._tables.get(key)
            if found is not None:
                return found
        if not self._reported:
            self._reported = True
            name, where = self._args.network_topology_name, ", ".join(self._args.namespaces)
            self._handle.report(
                f"NetworkTopology {name}: not found in {where}, or not readable; pods of AppGroups are placed whatever "
                "the network costs"
            )
        return None

    def _changed(self, key: str, _before: Any, after: Any) -> None:
        if key not in self._keys:
            return
        known = self._tables.pop(key, None)
        found, wrong = None, ""
        if after is not None:
            self._reported = False
            found, wrong = read_costs(after, self._args.weights_name)
            if found is not None:
                self._tables[key] = found
        regarding, problems = custom_reference(API_VERSION, "NetworkTopology", key, after), self._handle.problems
        if wrong:
            problems.set(regarding, INVALID, wrong)
        else:
            problems.clear(regarding)
        if found != known:
            self.version += 1


def read_costs(item: Any, weights: str) -> tuple[CostTable | None, str]:
    """The table under a name, None where the object cannot be read; and what is wrong with it, "" where nothing is."""
    try:
        spec = msgspec.convert(item.get("spec") or {}, _Spec)
    except msgspec.ValidationError as error:
        return None, f"spec: {error}; it counts as not there until that is put right"
    table, problems = CostTable({}, {}), []
    chosen = [each for each in spec.weights if each.name == weights]
    if not chosen:
        names = ", ".join(each.name for each in spec.weights) or "none"
        problems.append(f"it has no weights named {weights}, so that no cost is known; it has {names}")
    for topology_key, origin, cost in _entries(chosen):
        costs = {REGION: table.regions, ZONE: table.zones}.get(topology_key)
        if costs is None:
            continue
        if 0 <= cost.network_cost <= HIGHEST_COST:
            costs.setdefault(cost.destination, {})[origin] = cost.network_cost
        else:
            problems.append(
                f"the cost from {origin} to {cost.destination} is {cost.network_cost} and does not count, write a "
                f"number from 0 to {HIGHEST_COST}"
            )
    return table, listed(problems)


def _entries(weights: list[_Weights]) -> Iterator[tuple[str, str, _Cost]]:
    for each in weights:
        for topology in each.topology_list:
            for origin in topology.origin_list:
                for cost in origin.cost_list:
                    yield topology.topology_key, origin.origin, cost
