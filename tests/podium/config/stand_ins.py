"""The in-tree plugins as the configuration sees them: a name, arguments, extension points. They decide nothing."""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from podium.config import Duration, FieldError, FieldPath, Registry
from podium.config.types import Int32, Int64


class Arguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class DefaultPreemptionArgs(Arguments, frozen=True):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not 0 <= self.min_candidate_nodes_percentage <= 100:
            at = path.child("minCandidateNodesPercentage")
            yield FieldError.invalid(at, self.min_candidate_nodes_percentage, "not in valid range [0, 100]")
        if self.min_candidate_nodes_absolute < 0:
            at = path.child("minCandidateNodesAbsolute")
            yield FieldError.invalid(at, self.min_candidate_nodes_absolute, "not in valid range [0, inf)")


class DynamicResourcesArgs(Arguments, frozen=True):
    filter_timeout: Duration | None = Duration.parse("10s")
    binding_timeout: Duration | None = Duration.parse("10m")

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if self.binding_timeout is not None and self.binding_timeout < 10**9:
            yield FieldError.invalid(path.child("bindingTimeout"), self.binding_timeout, "must be at least 1 second")


class InterPodAffinityArgs(Arguments, frozen=True):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Arguments, frozen=True):
    added_affinity: dict[str, Any] | None = None


class ResourceSpec(Arguments, frozen=True):
    name: str = ""
    weight: Int64 = 1


class BalancedAllocationArgs(Arguments, frozen=True):
    resources: tuple[ResourceSpec, ...] = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class ShapePoint(Arguments, frozen=True):
    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatio(Arguments, frozen=True):
    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Arguments, frozen=True):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(Arguments, frozen=True):
    ignored_resources: tuple[str, ...] | None = None
    ignored_resource_groups: tuple[str, ...] | None = None
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for i, group in enumerate(self.ignored_resource_groups or ()):
            if "/" in group:
                at = path.child("ignoredResourceGroups").index(i)
                yield FieldError.invalid(at, group, "resource group name can't contain '/'")
        strategies = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
        if self.scoring_strategy.type not in strategies:
            at = path.child("scoringStrategy", "type")
            yield FieldError.not_supported(at, self.scoring_strategy.type, strategies)


class PodTopologySpreadArgs(Arguments, frozen=True):
    default_constraints: tuple[dict[str, Any], ...] | None = None
    defaulting_type: str = "System"


class VolumeBindingArgs(Arguments, frozen=True):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[ShapePoint, ...] = (ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0))


class StandIn:
    """Subclasses are what a registry holds: classes, not instances."""

    name: ClassVar[str]
    Args: ClassVar[type[msgspec.Struct] | None] = None
    points: ClassVar[frozenset[str]] = frozenset()


def plugin(name: str, points: str, args: type[msgspec.Struct] | None = None) -> type[StandIn]:
    """`plugin("Mine", "filter score")` → a class with that name, running at these points."""
    return type(name, (StandIn,), {"name": name, "Args": args, "points": frozenset(points.split())})


def registry_of(*plugins: type[StandIn]) -> Registry:
    return {each.name: each for each in plugins}


IN_TREE = (
    plugin("SchedulingGates", "preEnqueue"),
    plugin("PrioritySort", "queueSort"),
    plugin("NodeName", "preFilter filter"),
    plugin("NodeUnschedulable", "preFilter filter"),
    plugin("TaintToleration", "preFilter filter preScore score"),
    plugin("NodeAffinity", "preFilter filter preScore score", NodeAffinityArgs),
    plugin("NodePorts", "preFilter filter"),
    plugin("NodeResourcesFit", "preFilter filter preScore score placementScore", NodeResourcesFitArgs),
    plugin("VolumeRestrictions", "preFilter filter"),
    plugin("NodeVolumeLimits", "preFilter filter"),
    plugin("VolumeBinding", "preFilter filter preScore score reserve preBind", VolumeBindingArgs),
    plugin("VolumeZone", "preFilter filter"),
    plugin("PodTopologySpread", "preFilter filter preScore score", PodTopologySpreadArgs),
    plugin("InterPodAffinity", "preFilter filter preScore score", InterPodAffinityArgs),
    plugin(
        "DynamicResources",
        "preEnqueue preFilter filter postFilter score reserve preBind podGroupPostFilter",
        DynamicResourcesArgs,
    ),
    plugin("DefaultPreemption", "preEnqueue postFilter podGroupPostFilter", DefaultPreemptionArgs),
    plugin("NodeResourcesBalancedAllocation", "preScore score", BalancedAllocationArgs),
    plugin("ImageLocality", "score"),
    plugin("DefaultBinder", "bind"),
    plugin("NodeDeclaredFeatures", "preFilter filter"),
)

REGISTRY = registry_of(*IN_TREE)


def config_text(body: str) -> str:
    """A file with the two header lines before the given fields, which so begin on line 3."""
    return f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{body}"
