"""Adds up and compares amounts of resources, the way quotas count them.

cpu is in thousandths, everything else in units. cpu, memory and ephemeral storage always count; of other resources
(`scalars`) only those that are named. A request of 0 names its resource, so that a pod with it is measured by what its
namespace uses of that resource already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podium.cluster import CPU, EPHEMERAL_STORAGE, MEMORY, PodFacts

UNLIMITED: Final = 2**63 - 1
NO_SCALARS: Final[dict[str, int]] = {}
_REQUEST: Final = "CapacityScheduling: request"


class QuotaAmounts:
    """QuotaAmounts of resources."""

    __slots__ = ("cpu", "memory", "scalars", "storage")

    def __init__(
        self, cpu: int = 0, memory: int = 0, storage: int = 0, scalars: Mapping[str, int] = NO_SCALARS
    ) -> None:
        self.cpu = cpu
        self.memory = memory
        self.storage = storage
        self.scalars = dict(scalars) if scalars else NO_SCALARS

    def copy(self) -> QuotaAmounts:
        return QuotaAmounts(self.cpu, self.memory, self.storage, self.scalars)

    def add(self, other: QuotaAmounts, sign: int = 1) -> None:
        self.cpu += sign * other.cpu
        self.memory += sign * other.memory
        self.storage += sign * other.storage
        if other.scalars:
            scalars = self.scalars = dict(self.scalars)
            for name, amount in other.scalars.items():
                scalars[name] = scalars.get(name, 0) + sign * amount
                if sign < 0 and not scalars[name]:
                    del scalars[name]

    def named(self) -> dict[str, int]:
        """By resource name."""
        return {"cpu": self.cpu, "memory": self.memory, "ephemeral-storage": self.storage, **self.scalars}


def exceed(named: QuotaAmounts, others: QuotaAmounts, bound: QuotaAmounts, unnamed: int) -> bool:
    """Whether the two together are more than the bound: in cpu, memory or ephemeral storage, or in a scalar that is
    among the first. A scalar that the bound does not name has the bound `unnamed`."""
    if named.cpu + others.cpu > bound.cpu or named.memory + others.memory > bound.memory:
        return True
    if named.storage + others.storage > bound.storage:
        return True
    if not named.scalars:
        return False
    used, most = others.scalars, bound.scalars
    return any(amount + used.get(name, 0) > most.get(name, unnamed) for name, amount in named.scalars.items())


def request_of(facts: PodFacts) -> QuotaAmounts:
    """What a pod counts for. To be read only: it is worked out once for all pods with one signature."""
    request: QuotaAmounts | None = facts.notes.get(_REQUEST)
    if request is None:
        core, scalar = facts.counted, dict(facts.scalar)
        request = facts.notes[_REQUEST] = QuotaAmounts(
            int(core[CPU]), int(core[MEMORY]), int(core[EPHEMERAL_STORAGE]), dict.fromkeys(facts.none_of, 0) | scalar
        )
    return request
