"""Reads ElasticQuotas (scheduling.x-k8s.io/v1alpha1).

spec.min   guaranteed; what it does not name is 0
spec.max   the ceiling; where it is not given at all, there is none. Where it is, cpu, memory and ephemeral storage
           that it does not name are 0, so that pods that request them are rejected; other resources are unlimited
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from podium import custom_reference
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
from podium_plugins.capacity_scheduling.amounts import UNLIMITED, QuotaAmounts

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
