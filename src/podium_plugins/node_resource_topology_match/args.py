"""Types how NodeResourceTopologyMatch is configured: how zones are scored, and what is known between two reports.

    discardReservedNodes: true      the discard-reserved cache, whatever else is given
    cacheResyncPeriodSeconds > 0    the over-reserve cache
    otherwise                       the pass-through cache

A scoring strategy without a type is LeastAllocated; in the original that is an error at start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from podium import DEFAULT_RESOURCES, FieldError, FieldPath, ResourceSpec

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
BALANCED_ALLOCATION: Final = "BalancedAllocation"
LEAST_NUMA_NODES: Final = "LeastNUMANodes"
STRATEGIES: Final = (MOST_ALLOCATED, BALANCED_ALLOCATION, LEAST_ALLOCATED, LEAST_NUMA_NODES)

NONE: Final = "None"
ALL: Final = "All"
ONLY_EXCLUSIVE: Final = "OnlyExclusiveResources"
ONLY_RESOURCES: Final = "OnlyResources"
AUTODETECT: Final = "Autodetect"
DEDICATED: Final = "Dedicated"
SHARED: Final = "Shared"
ENABLED: Final = "Enabled"
DISABLED: Final = "Disabled"

MOST_WEIGHT: Final = 1_000_000


class _Arguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class ZoneScoringStrategy(_Arguments, frozen=True):
    """How zones are scored. A resource that is not listed, or with a weight of 0, weighs 1."""

    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if self.type not in STRATEGIES:
            yield FieldError.not_supported(path.child("type"), self.type, STRATEGIES)
        for i, resource in enumerate(self.resources):
            if resource.weight > MOST_WEIGHT:
                at = path.child("resources").index(i).child("weight")
                yield FieldError.invalid(at, resource.weight, f"must be at most {MOST_WEIGHT}")

    @property
    def weights(self) -> dict[str, int]:
        return {each.name: max(1, each.weight) for each in self.resources}


class TopologyCacheArgs(_Arguments, frozen=True):
    """How the over-reserve cache learns that a report covers its pods."""

    foreign_pods_detect: str = ALL
    """Whether pods of other schedulers make what is known of a node stale."""
    resync_method: str = AUTODETECT
    """Whether fingerprints cover all pods, or only those with exclusive resources; Autodetect: the report says."""
    informer_mode: str = DEDICATED
    """Which pods count as running: Dedicated all that are not pending, Shared those in the phase Running."""
    resync_scope: str = ALL
    """Whether a change of the kubelet's settings is taken over before the fingerprint fits."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for name, value, supported in (
            ("foreignPodsDetect", self.foreign_pods_detect, (NONE, ALL, ONLY_EXCLUSIVE)),
            ("resyncMethod", self.resync_method, (AUTODETECT, ALL, ONLY_EXCLUSIVE)),
            ("informerMode", self.informer_mode, (SHARED, DEDICATED)),
            ("resyncScope", self.resync_scope, (ALL, ONLY_RESOURCES)),
        ):
            if value not in supported:
                yield FieldError.not_supported(path.child(name), value, supported)


class NodeResourceTopologyMatchArgs(_Arguments, frozen=True):
    scoring_strategy: ZoneScoringStrategy = ZoneScoringStrategy()
    cache_resync_period_seconds: int = 0
    """More than 0 selects the over-reserve cache. Its length does not matter: reports are checked as they come."""
    discard_reserved_nodes: bool = False
    cache: TopologyCacheArgs = TopologyCacheArgs()
    preemption_mode: str = DISABLED
    """Whether dry runs of preemption give the zones of victims back; with the over-reserve cache only."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        yield from self.scoring_strategy.validate(path.child("scoringStrategy"))
        yield from self.cache.validate(path.child("cache"))
        period = self.cache_resync_period_seconds
        if period < 0:
            yield FieldError.invalid(path.child("cacheResyncPeriodSeconds"), period, "must be 0 or more")
        if self.preemption_mode not in (DISABLED, ENABLED):
            at = path.child("preemptionMode")
            yield FieldError.not_supported(at, self.preemption_mode, (DISABLED, ENABLED))

    @property
    def over_reserves(self) -> bool:
        return self.cache_resync_period_seconds > 0 and not self.discard_reserved_nodes
