"""Types how NodeResourcesFit is configured: resources the filter ignores, and the scoring strategy.

Without `scoringStrategy` it is LeastAllocated over cpu and memory. A strategy that is given must name its type; its
resources default to cpu and memory, and a weight of 0 to 1. What is ignored by the filter still counts for the score.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kubecel.names import qualified_name_errors
from podium.config.field import FieldError, FieldPath
from podium.placement.resource_usage import DEFAULT_RESOURCES, ResourceSpec
from podium.placement.shape import UtilizationShapePoint, shape_errors

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)


class _Arguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class RequestedToCapacityRatioParam(_Arguments, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(_Arguments, frozen=True):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def __post_init__(self) -> None:
        if not self.resources:
            msgspec.structs.force_setattr(self, "resources", DEFAULT_RESOURCES)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if self.type not in STRATEGIES:
            yield FieldError.not_supported(path.child("type"), self.type, STRATEGIES)
        for i, resource in enumerate(self.resources):
            if not 0 < resource.weight <= 100:
                detail = f"resource weight of {resource.name} not in valid range (0, 100]"
                yield FieldError.invalid(path.child("resources").index(i).child("weight"), resource.weight, detail)
        yield from self._validate_ratio(path.child("requestedToCapacityRatio"))

    def _validate_ratio(self, path: FieldPath) -> Iterator[FieldError]:
        ratio = self.requested_to_capacity_ratio
        if self.type == REQUESTED_TO_CAPACITY_RATIO:
            if ratio is None:
                yield FieldError.required(path, f"must be specified when type is {REQUESTED_TO_CAPACITY_RATIO}")
            else:
                yield from shape_errors(ratio.shape, path.child("shape"))
        elif ratio is not None:
            yield FieldError.forbidden(path, f"must be nil when type is not {REQUESTED_TO_CAPACITY_RATIO}")


class NodeResourcesFitArgs(_Arguments, frozen=True):
    ignored_resources: tuple[str, ...] | None = None
    ignored_resource_groups: tuple[str, ...] | None = None
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for i, resource in enumerate(self.ignored_resources or ()):
            yield from _name_errors(resource, path.child("ignoredResources").index(i))
        for i, group in enumerate(self.ignored_resource_groups or ()):
            at = path.child("ignoredResourceGroups").index(i)
            if "/" in group:
                yield FieldError.invalid(at, group, "resource group name can't contain '/'")
            yield from _name_errors(group, at)
        yield from self.scoring_strategy.validate(path.child("scoringStrategy"))


def _name_errors(name: str, path: FieldPath) -> Iterator[FieldError]:
    for error in qualified_name_errors(name):
        yield FieldError.invalid(path, name, error)
