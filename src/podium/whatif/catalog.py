"""Reads catalogs of node types with their prices, and makes nodes of them.

The catalog of ours is YAML; `podium.whatif.vendor_lists` reads what Karpenter and the clouds' commands print. Prices
may come from a CSV file with the columns name, zone, price. Where a list has what a machine has, `reserved` says what
is kept for the system: `eks`, `gke` or `none`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from kubecel.quantity import NANO, QuantityError, format_nano, parse
from podium.errors import UserError
from podium.kube import Node, ObjectMeta, Taint
from podium.kube.documents import DocumentError, read_documents
from podium.kube.node import NodeSpec, NodeStatus
from podium.whatif.changes import AddNodes
from podium.whatif.records import CostRecord

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
OS: Final = "kubernetes.io/os"
ARCH: Final = "kubernetes.io/arch"
DEFAULT_PODS: Final = 110
CURRENCY: Final = "USD"
RESERVED: Final = ("eks", "gke", "none")
PRICE_COLUMNS: Final = ["name", "zone", "price"]
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30


class CatalogError(UserError, ValueError):
    """A catalog that cannot be used: file, line, and what to write."""


@dataclass(frozen=True)
class NodeType:
    """A type of node that can be added."""

    name: str
    allocatable: Mapping[str, Any]
    price: float | None = None
    spot_price: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    zones: tuple[str, ...] = ()
    max: int | None = None
    zone_prices: Mapping[str, float] = field(default_factory=dict)
    where: str | Callable[[], str] = ""
    """File and line, or what finds them out: in JSON that means to read the file again."""

    @property
    def place(self) -> str:
        """Where it is written, as it begins a message."""
        where = self.where if isinstance(self.where, str) else self.where()
        return f"{where}: " if where else ""

    def price_in(self, zone: str, *, spot: bool = False) -> float | None:
        """What a node costs per hour; None where that is not known."""
        if spot and self.spot_price is not None:
            return self.spot_price
        return self.zone_prices.get(zone, self.price)

    def node(self, name: str, zone: str = "") -> Node:
        """A node of this type that has just joined."""
        zone = zone or (self.zones[0] if self.zones else "")
        labels = {OS: "linux", ARCH: "amd64", INSTANCE_TYPE: self.name, **({ZONE: zone} if zone else {})}
        labels |= {**self.labels, HOSTNAME: name}
        metadata = ObjectMeta(name=name, uid=name, labels=labels)
        status = NodeStatus(allocatable=dict(self.allocatable), capacity=dict(self.allocatable))
        return Node(metadata=metadata, spec=NodeSpec(taints=self.taints), status=status)


@dataclass
class Catalog:
    """The types by name, and the currency of their prices."""

    types: dict[str, NodeType]
    currency: str = CURRENCY
    sources: str = ""

    def make(self, change: AddNodes, name: str) -> Node:
        """A node for a change that names a type of the catalog."""
        found = self.types.get(change.type)
        if found is None:
            known = ", ".join(list(self.types)[:5]) + (" …" if len(self.types) > 5 else "")
            raise CatalogError(
                f"--add-nodes {change.count}={change.type}: the catalog has no such type; it has {known}"
            )
        return found.node(name, change.zone)

    def cost(self, changes: Sequence[Any], *, spot: bool = False) -> CostRecord | None:
        """What the nodes that changes add from the catalog cost."""
        total, known = 0.0, False
        for each in changes:
            kind = self.types.get(each.type) if isinstance(each, AddNodes) and each.type else None
            price = (
                None if kind is None else kind.price_in(each.zone or (kind.zones[0] if kind.zones else ""), spot=spot)
            )
            if price is not None:
                total, known = total + price * each.count, True
        return CostRecord(per_hour=round(total, 6), currency=self.currency) if known else None


class _TypeEntry(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """An entry of `types`."""

    name: str
    price: float | None = None
    spot_price: float | None = None
    capacity: dict[str, str | int | float] | None = None
    allocatable: dict[str, str | int | float] | None = None
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    zones: list[str] = []
    max: int | None = None
    reserved: str = "none"


def read_catalog(files: Iterable[tuple[str, str]]) -> Catalog:
    """The catalog in these texts, each with the name of its file; raises CatalogError."""
    from podium.whatif.vendor_lists import types_of_list

    types: dict[str, NodeType] = {}
    prices: list[tuple[str, str, float, str]] = []
    currency, names = CURRENCY, []
    for text, source in files:
        names.append(source)
        if text.lstrip("\ufeff \t\r\n").lower().startswith("name,zone,price"):
            prices += _prices(text, source)
            continue
        try:
            for document in read_documents(text if text.lstrip().startswith("{") else _as_object(text), source):
                value = msgspec.json.decode(document.data)
                if isinstance(value, dict) and isinstance(value.get("types"), list):
                    currency = str(value.get("currency", currency))
                    found = [_type(each, document, number, source) for number, each in enumerate(value["types"])]
                else:
                    found = types_of_list(value, source)
                for each in found:
                    types[each.name] = _merged(types.get(each.name), each)
        except DocumentError as error:
            raise CatalogError(str(error)) from None
    for name, zone, price, where in prices:
        if name in types:
            known = types[name]
            if zone:
                types[name] = replace(known, zone_prices={**known.zone_prices, zone: price})
            else:
                types[name] = replace(known, price=price, where=where)
    if not types:
        raise CatalogError(
            f"{', '.join(names)}: no type of node in it; write types: [{{name: m6i.xlarge, price: 0.214, …}}]"
        )
    return Catalog(types, currency, ", ".join(names))


def _as_object(text: str) -> str:
    """A JSON array as the value of a key, for a reader of objects."""
    return f'{{"list": {text}}}' if text.lstrip().startswith("[") else text


def _merged(before: NodeType | None, after: NodeType) -> NodeType:
    """Lists by zone name a type once for each zone."""
    if before is None:
        return after
    return replace(before, zones=tuple(dict.fromkeys((*before.zones, *after.zones))))


def _type(entry: Any, document: Any, number: int, source: str) -> NodeType:
    path = f"$.types[{number}]"

    def where() -> str:
        return f"{source}:{document.line_of(path)}"

    try:
        found = msgspec.convert(entry, _TypeEntry, strict=False)
    except msgspec.ValidationError as error:
        wrong, _, inner = str(error).partition(" - at `$")
        raise CatalogError(f"{where()}: {path}{inner.rstrip('`')}: {wrong}") from None
    for name, price in (("price", found.price), ("spotPrice", found.spot_price)):
        if price is not None and (math.isnan(price) or math.isinf(price) or price < 0):
            raise CatalogError(f"{where()}: type {found.name}: {name} {price} is no price; write a number from 0 on")
    if found.max is not None and found.max < 0:
        raise CatalogError(f"{where()}: type {found.name}: max {found.max} is negative; leave it out for no limit")
    if found.reserved not in RESERVED:
        raise CatalogError(f"{where()}: type {found.name}: reserved {found.reserved}: write {', '.join(RESERVED)}")
    amounts = found.allocatable or found.capacity
    if not amounts:
        raise CatalogError(
            f"{where()}: type {found.name} has no capacity; write capacity: {{cpu: 4, memory: 16Gi, pods: 58}}"
        )
    try:
        check_amounts(amounts, f"type {found.name}")
    except CatalogError as error:
        raise CatalogError(f"{where()}: {error}") from None
    if found.allocatable is None:
        amounts = allocatable_of(amounts, found.reserved)
    return NodeType(
        found.name,
        {"pods": DEFAULT_PODS, **amounts},
        found.price,
        found.spot_price,
        found.labels,
        tuple(found.taints),
        tuple(found.zones),
        found.max,
        where=where,
    )


def check_amounts(amounts: Mapping[str, Any], where: str) -> None:
    """Raises CatalogError unless cpu and memory are there and every amount is above 0."""
    for name in ("cpu", "memory"):
        if name not in amounts:
            raise CatalogError(f"{where} has no {name}; write capacity: {{cpu: 4, memory: 16Gi, pods: 58}}")
    for name, amount in amounts.items():
        try:
            number = parse(amount)
        except QuantityError as error:
            raise CatalogError(f"{where}: {name}: {error}") from None
        if number < 0 or (number == 0 and name in ("cpu", "memory", "pods")):
            raise CatalogError(f"{where}: {name} {amount} is no capacity; write an amount above 0")


def allocatable_of(capacity: Mapping[str, Any], reserved: str) -> dict[str, Any]:
    """What is left of a machine for pods.

    >>> allocatable_of({"cpu": 4, "memory": "16Gi", "pods": 58}, "eks")
    {'cpu': '3920m', 'memory': '15391Mi', 'pods': 58}
    """
    if reserved == "none":
        return dict(capacity)
    cores = parse(capacity["cpu"]) / NANO
    memory = parse(capacity["memory"]) // NANO
    reserved_cpu = sum(
        share * max(0.0, min(cores, upto) - start)
        for start, upto, share in ((0, 1, 60.0), (1, 2, 10.0), (2, 4, 5.0), (4, math.inf, 2.5))
    )
    if reserved == "eks":
        pods = parse(capacity.get("pods", DEFAULT_PODS)) // NANO
        reserved_memory = (255 + 11 * pods + 100) * _MIB
    else:
        reserved_memory = _gke_memory(memory) + 100 * _MIB
    left = max(0, memory - reserved_memory)
    return {
        **capacity,
        "cpu": f"{math.floor(cores * 1000 - reserved_cpu)}m",
        "memory": format_nano(left * NANO, binary=True),
    }


def _gke_memory(memory: int) -> int:
    """A quarter of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112, 2 % above."""
    if memory < _GIB:
        return 255 * _MIB
    steps = ((0, 4, 25), (4, 8, 20), (8, 16, 10), (16, 128, 6), (128, 1 << 30, 2))
    return sum(percent * max(0, min(memory, upto * _GIB) - start * _GIB) // 100 for start, upto, percent in steps)


def _prices(text: str, source: str) -> list[tuple[str, str, float, str]]:
    """The rows of a price list: name, zone (may be empty), price per hour."""
    found = []
    for number, row in enumerate(csv.reader(io.StringIO(text.lstrip("\ufeff"))), start=1):
        if number == 1 or not row:
            continue
        if len(row) != len(PRICE_COLUMNS):
            raise CatalogError(f"{source}:{number}: {len(row)} columns; write {','.join(PRICE_COLUMNS)}")
        try:
            price = float(row[2])
        except ValueError:
            price = math.nan
        if not price >= 0 or math.isinf(price):
            raise CatalogError(f'{source}:{number}: "{row[2]}" is no price; write a number from 0 on')
        found.append((row[0].strip(), row[1].strip(), price, f"{source}:{number}"))
    return found
