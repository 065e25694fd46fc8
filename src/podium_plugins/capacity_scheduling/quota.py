"""Reads ElasticQuotas (scheduling.x-k8s.io/v1alpha1).

spec.min   guaranteed; what it does not name is 0
spec.max   the ceiling; where it is not given at all, there is none. Where it is, cpu, memory and ephemeral storage
           that it does not name are 0, so that pods that request them are rejected; other resources are unlimited

Amounts are added up and compared the way quotas count them: cpu is in thousandths, everything else in units. cpu,
memory and ephemeral storage always count; of other resources (`scalars`) only those that are named. A request of 0
names its resource, so that a pod with it is measured by what its namespace uses of that resource already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from podium import custom_reference
from podium.cluster import CPU as CPU_ROW
from podium.cluster import EPHEMERAL_STORAGE as STORAGE_ROW
from podium.cluster import MEMORY as MEMORY_ROW
from podium.cluster import PodFacts
from podium.kube import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    ObjectMeta,
    ObjectReference,
    QuantityError,
    Resources,
    is_scalar_resource_name,
    milli_of,
    parse_quantity,
    units_of,
)

UNLIMITED: Final = 2**63 - 1
NO_SCALARS: Final[dict[str, int]] = {}
_REQUEST: Final = "CapacityScheduling: request"


class QuotaAmounts:
    """Amounts of resources."""

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
            int(core[CPU_ROW]), int(core[MEMORY_ROW]), int(core[STORAGE_ROW]), dict.fromkeys(facts.none_of, 0) | scalar
        )
    return request


API_VERSION: Final = "scheduling.x-k8s.io/v1alpha1"
RESOURCE: Final = "elasticquotas.scheduling.x-k8s.io"
NO_CEILING: Final = QuotaAmounts(UNLIMITED, UNLIMITED, UNLIMITED)


class _Spec(msgspec.Struct, frozen=True):
    min: Resources | None = None
    max: Resources | None = None


class _ElasticQuota(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec | None = None


class Quota(msgspec.Struct, frozen=True, eq=False):
    """What scheduling reads of an ElasticQuota."""

    regarding: ObjectReference
    created: str
    min: QuotaAmounts
    max: QuotaAmounts
    problem: str = ""
    """What is wrong with it, so that it cannot be used: the pods of its namespace wait then."""
    warning: str = ""
    """What is odd about it, although it can be used."""

    @property
    def key(self) -> str:
        """Its "namespace/name"."""
        return f"{self.regarding.namespace}/{self.regarding.name}"


def read_quota(key: str, item: Any) -> Quota:
    """An ElasticQuota from the API's data."""
    created, regarding = "", custom_reference(API_VERSION, "ElasticQuota", key, item)
    try:
        quota = msgspec.convert(item, _ElasticQuota)
        created = quota.metadata.creation_timestamp or ""
        spec = quota.spec or _Spec()
        guaranteed, ceiling = _amounts("min", spec.min), _amounts("max", spec.max)
    except (msgspec.ValidationError, ValueError) as error:
        return Quota(regarding, created, QuotaAmounts(), NO_CEILING, problem=str(error))
    most = ceiling if spec.max is not None else NO_CEILING
    below = [name for name, amount in guaranteed.named().items() if amount > most.named().get(name, UNLIMITED)]
    odd = f"spec.min is more than spec.max for {', '.join(below)}: the pods never get all of it" if below else ""
    return Quota(regarding, created, guaranteed, most, warning=odd)


def _amounts(bound: str, resources: Resources | None) -> QuotaAmounts:
    found = {name: _amount(f"spec.{bound}.{name}", name, amount) for name, amount in (resources or {}).items()}
    cpu, memory, storage = (found.pop(name, 0) for name in (CPU, MEMORY, EPHEMERAL_STORAGE))
    found.pop(PODS, None)  # no pod requests pods, so a bound on them bounds nothing
    return QuotaAmounts(
        cpu, memory, storage, {name: amount for name, amount in found.items() if is_scalar_resource_name(name)}
    )


def _amount(path: str, name: str, amount: Any) -> int:
    try:
        nano = parse_quantity(amount)
    except QuantityError as error:
        raise ValueError(f"{path}: {error}") from None
    if nano < 0:
        raise ValueError(f"{path} must not be negative, got {amount}")
    return milli_of(nano) if name == CPU else units_of(nano)
