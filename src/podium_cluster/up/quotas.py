"""Reads how full the ElasticQuotas of a cluster are, and says so in one line of the live view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kubecel.quantity import QuantityError, format_nano, parse
from podium.kube.printable import printable
from podium_cluster.apiserver.api import EmbeddedApi

MOST_SHOWN: Final = 4
MOST_READ: Final = 100
"""Quotas that are looked at for one picture."""
_BINARY: Final = ("memory", "ephemeral-storage")


class QuotaUse(NamedTuple):
    """The resource of a quota that is nearest to its max: what is used, at most and guaranteed, in nano units."""

    name: str
    resource: str
    used: int
    most: int
    least: int


class _Bounds(msgspec.Struct):
    min: dict[str, Any] = {}
    max: dict[str, Any] = {}


class _Status(msgspec.Struct):
    used: dict[str, Any] = {}


class _Quota(msgspec.Struct):
    spec: _Bounds = msgspec.field(default_factory=_Bounds)
    status: _Status = msgspec.field(default_factory=_Status)


_decoder: Final = msgspec.json.Decoder(_Quota)


def quotas_in_use(api: EmbeddedApi) -> list[QuotaUse]:
    """Every quota with a max, the fullest first; those that cannot be read are left out."""
    kind = api.kinds.by_kind("scheduling.x-k8s.io/v1alpha1", "ElasticQuota")
    if kind is None:
        return []
    found = []
    for stored in api.store.items(kind)[:MOST_READ]:
        try:
            use = _use(f"{stored.namespace}/{stored.name}", _decoder.decode(stored.raw))
        except (msgspec.DecodeError, QuantityError, TypeError):
            continue
        if use is not None:
            found.append(use)
    return sorted(found, key=lambda use: (-_share(use), use.name))


def _use(name: str, quota: _Quota) -> QuotaUse | None:
    used, least = quota.status.used, quota.spec.min
    uses = [
        QuotaUse(name, resource, parse(used.get(resource, 0)), parse(most), parse(least.get(resource, 0)))
        for resource, most in quota.spec.max.items()
    ]
    return max(uses, key=_share, default=None)


def _share(use: QuotaUse) -> float:
    return use.used / use.most if use.most > 0 else float(use.used > 0)


def quota_line(quotas: Sequence[QuotaUse]) -> str:
    """
    >>> quota_line([QuotaUse("q1/q", "cpu", 6 * 10**9, 6 * 10**9, 4 * 10**9), QuotaUse("q2/q", "cpu", 0, 10**9, 0)])
    'quotas: q1/q 6 of 6 cpu (2 borrowed), q2/q 0 of 1 cpu'
    """
    shown = ", ".join(map(_shown, quotas[:MOST_SHOWN]))
    more = f", and {len(quotas) - MOST_SHOWN} more" if len(quotas) > MOST_SHOWN else ""
    return f"quotas: {shown}{more}"


def _shown(use: QuotaUse) -> str:
    borrowed = f" ({_amount(use, use.used - use.least)} borrowed)" if use.used > use.least else ""
    amounts = f"{_amount(use, use.used)} of {_amount(use, use.most)}"
    return f"{printable(use.name)} {amounts} {printable(use.resource)}{borrowed}"


def _amount(use: QuotaUse, nano: int) -> str:
    return format_nano(nano, binary=use.resource in _BINARY or use.resource.startswith("hugepages-"))
