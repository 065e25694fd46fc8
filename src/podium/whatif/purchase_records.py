"""Asks which nodes to buy for the pods that wait, or those of a file, and makes the record of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.whatif.applying import NodeMaker, apply
from podium.whatif.catalog import Catalog
from podium.whatif.changes import Change
from podium.whatif.drain import drain
from podium.whatif.fit import FitQuestion, rules_of, shown_changes
from podium.whatif.manifests import Given, wanted
from podium.whatif.offers import PurchaseRules
from podium.whatif.purchase import Purchase, purchase
from podium.whatif.records import CostRecord, PodRecord, Record, placed_record
from podium.whatif.sandbox import Sandbox


class BoughtRecord(Record, kw_only=True):
    """A new node, what it would hold, and what it leaves free."""

    node: str
    type: str
    zone: str
    price: float
    pods: list[str]
    left_over: dict[str, str]


class TypeCountRecord(Record, kw_only=True):
    """How many nodes of a type."""

    type: str
    zone: str
    count: int
    price: float


class RunnerUpRecord(Record, kw_only=True):
    """The next best combination."""

    types: dict[str, int]
    price: float


class UnholdableRecord(Record, kw_only=True):
    """A pod that no type can hold, and why each refuses it."""

    pod: str
    reasons: dict[str, str]


class PurchaseRecord(Record, kw_only=True):
    """The answer of `podium whatif --unblock`."""

    nodes: list[BoughtRecord]
    types: list[TypeCountRecord]
    price: float
    currency: str
    cost: CostRecord
    solved: bool
    """Whether every pod has a place."""
    proved: str
    """optimal, or gap."""
    gap: float
    lower_bound: float
    runner_up: RunnerUpRecord | None
    unholdable: list[UnholdableRecord]
    daemon_sets: dict[str, dict[str, int]]
    """What pods of DaemonSets take of a node of each type."""
    order_sensitive: bool
    also_by: list[str]
    """What else would unblock the pods without buying."""
    pods: list[PodRecord]


@dataclass
class PurchaseAnswer:
    question: FitQuestion
    record: PurchaseRecord
    yes: bool


def ask_purchase(
    sandbox: Sandbox,
    catalog: Catalog,
    changes: Sequence[Change] = (),
    given: Given | None = None,
    rules: PurchaseRules | None = None,
    *,
    replicas: int | None = None,
    with_pending: bool = False,
    make: NodeMaker | None = None,
    origin: str = "the files",
) -> PurchaseAnswer:
    """The cheapest nodes after the changes; pods that a quota would refuse are left out."""
    with sandbox.trying():
        applied = apply(sandbox, changes, make)
        if applied.drained:
            drain(sandbox, applied.drained, with_remedies=False)
        pods, names = [], []
        if given:
            found = wanted(sandbox, given, replicas, origin, applied.unplaced)
            for each in found.others:
                sandbox.set(each)
            quotas = rules_of(sandbox)
            for made in [*found.pods, *applied.unplaced]:
                pod = quotas.with_defaults(made) if quotas else made
                if not quotas or quotas.refusal(pod) is None:
                    sandbox.set(pod)
                    pods.append(pod)
            names = [pod.key for pod in found.pods]
        if not given or with_pending:
            ours = {pod.uid for pod in pods}
            pods = [*(pod for pod in sandbox.pending() if pod.uid not in ours and not pod.spec.scheduling_gates), *pods]
        bought = purchase(sandbox, catalog, pods, rules)
    question = FitQuestion(changes=shown_changes(changes, applied), given=names, pending=not given or with_pending)
    return PurchaseAnswer(question, _record(bought), bought.solved)


def _record(bought: Purchase) -> PurchaseRecord:
    prices = {(each.offer.name, each.offer.zone): each.offer.price for each in bought.nodes}
    runner_up = bought.runner_up
    return PurchaseRecord(
        nodes=[
            BoughtRecord(
                node=each.node,
                type=each.offer.name,
                zone=each.offer.zone,
                price=each.offer.price,
                pods=each.pods,
                left_over=each.left_over,
            )
            for each in bought.nodes
        ],
        types=[
            TypeCountRecord(type=name, zone=zone, count=number, price=prices[name, zone])
            for (name, zone), number in bought.counts.items()
        ],
        price=bought.price,
        currency=bought.currency,
        cost=CostRecord(per_hour=bought.price, currency=bought.currency),
        solved=bought.solved,
        proved=bought.proved,
        gap=round(bought.gap, 6),
        lower_bound=bought.lower_bound,
        runner_up=None if runner_up is None else RunnerUpRecord(types=runner_up[0], price=runner_up[1]),
        unholdable=[UnholdableRecord(pod=each.pod.key, reasons=each.reasons) for each in bought.hopeless],
        daemon_sets=bought.daemon_share,
        order_sensitive=bought.order_sensitive,
        also_by=[],
        pods=[
            PodRecord(
                pod=each.pod.key,
                origin="pending",
                after=placed_record(each),
                verdict="fits" if each.fits else "blocked",
            )
            for each in bought.placements
        ],
    )
