"""Reads what `podium evaluate --json` printed, and says how a policy did against the rule that its fallback is."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import msgspec

RULE = "BestFit"
PUBLISHED = frozenset(("FGD", RULE, "GpuPacking", "GpuClustering", "DotProd", "Random"))


class ReplayError(ValueError):
    """A text that is no such list of rows; one sentence says why."""


class ReplayedPolicy(NamedTuple):
    """How much more GPU a policy allocated than the rule: mean over seeds, and half of its 95 % interval."""

    policy: str
    rule: str
    mean: float
    margin: float
    seeds: int


class _Row(msgspec.Struct):
    list: str
    policy: str
    seed: int
    gpu_allocation_pct: float
    ties: str = ""
    arrived_pct: float | None = None
    load: float | None = None


def replayed(text: bytes) -> ReplayedPolicy:
    """What the rows say; raises ReplayError."""
    from podium.kube.documents import FILE, DocumentError, read_json
    from podium_lab.simulator.summary import estimate

    try:
        rows = msgspec.convert(read_json(text, bounds=FILE), list[_Row])
    except (DocumentError, msgspec.ValidationError) as error:
        raise ReplayError(f"is not what podium evaluate --json prints: {error}") from None
    policies = {row.policy for row in rows} - PUBLISHED
    if len(policies) != 1:
        raise ReplayError(f"has {len(policies)} policies beside the published rules; one is wanted")
    (policy,) = policies
    rule = {_case(row): row.gpu_allocation_pct for row in rows if row.policy == RULE}
    by_seed: defaultdict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row.policy == policy and _case(row) in rule:
            by_seed[row.seed].append(row.gpu_allocation_pct - rule[_case(row)])
    if len(by_seed) < 2:
        raise ReplayError(f"has fewer than two seeds on which both {policy} and {RULE} were judged")
    found = estimate([sum(each) / len(each) for each in by_seed.values()])
    return ReplayedPolicy(policy, RULE, found.mean, found.margin, found.seeds)


def _case(row: _Row) -> tuple[object, ...]:
    return row.list, row.seed, row.ties, row.arrived_pct, row.load
