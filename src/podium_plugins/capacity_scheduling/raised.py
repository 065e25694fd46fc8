"""Raises the bounds of an ElasticQuota until a pod may come: what `explain` and `podium whatif` try as a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from podium.kube import CPU
from podium_plugins.capacity_scheduling.admission import QuotaDemand
from podium_plugins.capacity_scheduling.amounts import UNLIMITED
from podium_plugins.capacity_scheduling.ledger import QuotaLedger
from podium_plugins.capacity_scheduling.standing import shown_amount

MAX: Final = "max"
MIN: Final = "min"


def shortages(ledger: QuotaLedger, demand: QuotaDemand) -> dict[str, dict[str, int]]:
    """What the quota's max, and the sum of all min, lack of each resource."""
    used, own, most = demand.use.used.named(), demand.own.named(), demand.quota.max.named()
    over_max = {name: used.get(name, 0) + amount - most.get(name, UNLIMITED) for name, amount in own.items()}
    used, wanted, least = ledger.total_used.named(), demand.all.named(), ledger.total_min.named()
    over_min = {
        name: used.get(name, 0) + wanted.get(name, 0) - least.get(name, 0) for name in dict.fromkeys((*wanted, *used))
    }
    return {
        bound: short
        for bound, over in ((MAX, over_max), (MIN, over_min))
        if (short := {name: amount for name, amount in over.items() if amount > 0})
    }


def raised(item: Mapping[str, Any], demand: QuotaDemand, short: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """The quota's data with bounds that allow what is short."""
    spec = dict(item.get("spec") or {})
    for bound, amounts in short.items():
        has = (demand.quota.max if bound == MAX else demand.quota.min).named()
        more = {
            name: f"{has.get(name, 0) + amount}m" if name == CPU else str(has.get(name, 0) + amount)
            for name, amount in amounts.items()
        }
        spec[bound] = {**(spec.get(bound) or {}), **more}
    return {**item, "spec": spec}


def sentences(demand: QuotaDemand, short: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The amounts, as a remedy says them."""
    return [
        f"{shown_amount(name, amount)} more {name} in spec.{bound} of ElasticQuota {demand.quota.key}"
        for bound, amounts in short.items()
        for name, amount in amounts.items()
    ]
