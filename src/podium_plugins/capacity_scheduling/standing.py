"""Says how the quotas stand for a pod that they keep waiting: who uses what, who lent it, and who may reclaim it."""

from __future__ import annotations

from collections.abc import Iterator

from podium.kube import CPU, EPHEMERAL_STORAGE, MEMORY, MILLI, NANO, format_nano
from podium_plugins.capacity_scheduling.admission import QuotaDemand, over_max
from podium_plugins.capacity_scheduling.amounts import UNLIMITED
from podium_plugins.capacity_scheduling.ledger import QuotaLedger


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
