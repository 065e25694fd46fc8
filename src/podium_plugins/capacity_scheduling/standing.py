"""Says how the quotas stand for a pod that they keep waiting: who uses what, who lent it, and who may reclaim it.

It also raises the bounds of an ElasticQuota until a pod may come: what `explain` and `podium whatif` try as a remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from podium.kube import CPU, EPHEMERAL_STORAGE, MEMORY, MILLI, NANO, format_nano
from podium_plugins.capacity_scheduling.admission import QuotaDemand, over_max
from podium_plugins.capacity_scheduling.ledger import QuotaLedger
from podium_plugins.capacity_scheduling.quota import UNLIMITED

MAX: Final = "max"
MIN: Final = "min"


def standing(ledger: QuotaLedger, namespace: str, demand: QuotaDemand) -> list[str]:
    """One sentence for each resource that the pod requests, and one for each that all quotas have used up."""
    return [*_own(ledger, namespace, demand), *_together(ledger, demand)]


def _own(ledger: QuotaLedger, namespace: str, demand: QuotaDemand) -> Iterator[str]:
    used, most, least = demand.use.used.named(), demand.quota.max.named(), demand.quota.min.named()
    for name, wanted in demand.own.named().items():
        use, ceiling = used.get(name, 0), most.get(name, UNLIMITED)
        if not wanted and use <= ceiling:
            continue
        of_max = "" if ceiling == UNLIMITED else f" of max {shown_amount(name, ceiling)}"
        sentence = f"{namespace} uses {shown_amount(name, use)}{of_max} {name}"
        borrowed = use - least.get(name, 0)
        if borrowed > 0:
            lenders = _lenders(ledger, namespace, name)
            verb = "is" if shown_amount(name, borrowed) == "1" else "are"
            sentence += f"; {shown_amount(name, borrowed)} {verb} borrowed"
            sentence += f" from {' and '.join(lenders)}, which may reclaim {'it' if verb == 'is' else 'them'}" * bool(
                lenders
            )
        over = use + wanted - ceiling
        if over > 0:
            sentence += f"; this pod would exceed max by {shown_amount(name, over)}"
        yield sentence


def _together(ledger: QuotaLedger, demand: QuotaDemand) -> Iterator[str]:
    if over_max(demand.own, demand.use.used, demand.quota):
        return
    used, least, wanted = ledger.total_used.named(), ledger.total_min.named(), demand.all.named()
    for name in dict.fromkeys((*wanted, *used)):
        use, guaranteed = used.get(name, 0), least.get(name, 0)
        if use + wanted.get(name, 0) > guaranteed:
            yield (
                f"all quotas together use {shown_amount(name, use)} of {shown_amount(name, guaranteed)} {name}, "
                f"the sum of min; this pod needs {shown_amount(name, wanted.get(name, 0))}"
            )


def _lenders(ledger: QuotaLedger, namespace: str, name: str) -> list[str]:
    """The namespaces that use less than is guaranteed to them, those with most to lend first."""
    left = {
        other: use.quota.min.named().get(name, 0) - use.used.named().get(name, 0)
        for other, use in ledger.with_quota()
        if use.quota is not None and other != namespace
    }
    return sorted((other for other, amount in left.items() if amount > 0), key=lambda other: (-left[other], other))


def shown_amount(name: str, amount: int) -> str:
    """An amount in Kubernetes' notation."""
    nano = amount * (MILLI if name == CPU else NANO)
    return format_nano(nano, binary=name in (MEMORY, EPHEMERAL_STORAGE) or name.startswith("hugepages-"))


# The bounds that would let the pod come


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
