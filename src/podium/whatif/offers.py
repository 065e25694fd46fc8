"""Makes the offers that nodes are bought from: each type of a catalog in each zone that matters, with what it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from msgspec.structs import replace

from kubecel.quantity import NANO, parse
from podium.kube import Node, Pod
from podium.kube.requests import offered, requested
from podium.whatif.catalog import Catalog, CatalogError, NodeType
from podium.whatif.patterns import QuestionError
from podium.whatif.sandbox import Sandbox
from podium.workloads import daemon_sets

SECONDS: Final = 10.0


@dataclass(frozen=True)
class PurchaseRules:
    """The options of `--unblock`."""

    max_nodes: int | None = None
    max_types: int | None = None
    only: str = ""
    spot: bool = False
    seconds: float = SECONDS
    keep_free: Mapping[str, float] = field(default_factory=dict)
    """Shares of a resource that stay free on new nodes."""


@dataclass(frozen=True)
class Offer:
    """A type in a zone, at its price."""

    type: NodeType
    zone: str
    price: float
    node: Node
    room: Mapping[str, int]
    """What is left for pods beside those of DaemonSets, and the pod slots under "pods"."""
    daemons: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.type.name


def offers_of(
    sandbox: Sandbox, catalog: Catalog, pods: Sequence[Pod], rules: PurchaseRules, of_each: Sequence[Pod]
) -> list[Offer]:
    """The types of the catalog in their zones, the cheapest first; raises CatalogError for one without a price."""
    zones_matter = _zones_matter(sandbox, pods)
    offers = []
    for kind in catalog.types.values():
        if rules.only and not any(fnmatchcase(kind.name, each) for each in rules.only.split(",")):
            continue
        for zone in _zones(kind, rules, zones_matter=zones_matter):
            price = kind.price_in(zone, spot=rules.spot)
            if price is None:
                raise CatalogError(
                    f"{kind.place}type {kind.name} has no price; write price: 0.214, or leave it out with --only"
                )
            offers.append(_offer(kind, zone, price, rules, of_each))
    if not offers:
        raise QuestionError(f"--only {rules.only}: the catalog has no type of that name")
    offers.sort(key=lambda each: (each.price, each.name, each.zone))
    return offers


def _zones(kind: NodeType, rules: PurchaseRules, *, zones_matter: bool) -> Sequence[str]:
    if not kind.zones:
        return ("",)
    if len(kind.zones) > 1 and not zones_matter:
        return (min(kind.zones, key=lambda zone: kind.price_in(zone, spot=rules.spot) or 0.0),)
    return kind.zones


def _zones_matter(sandbox: Sandbox, pods: Sequence[Pod]) -> bool:
    """Whether a pod's place in a zone can make a difference."""
    text = "topology.kubernetes.io/zone"
    for pod in {sandbox.cluster.facts.of(pod).signature: pod for pod in pods}.values():
        spec = pod.spec
        if text in spec.node_selector or spec.affinity is not None or spec.topology_spread_constraints or spec.volumes:
            return True
    return bool(sandbox.cluster.terms._groups)


def _offer(kind: NodeType, zone: str, price: float, rules: PurchaseRules, of_each: Sequence[Pod]) -> Offer:
    node = _keeping_free(rules, kind.node(f"{kind.name}{'-' * bool(zone)}{zone}-new", zone))
    taken: Counter[str] = Counter()
    for pod in daemon_sets.pods_for(node, of_each):
        taken.update(requested(pod))
        taken["pods"] += 1
    room = {name: max(0, amount - taken[name]) for name, amount in offered(node.status.allocatable).items()}
    return Offer(kind, zone, price, node, room, dict(taken))


def _keeping_free(rules: PurchaseRules, node: Node) -> Node:
    if not rules.keep_free:
        return node
    amounts = dict(node.status.allocatable)
    for name, share in rules.keep_free.items():
        if name in amounts:
            nano = int(parse(amounts[name]) * (1 - share))
            amounts[name] = f"{nano * 1000 // NANO}m" if name == "cpu" else nano // NANO
    return replace(node, status=replace(node.status, allocatable=amounts))
