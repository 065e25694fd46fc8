"""Prefers the node after whose choice the whole cluster looks best, by one of three objectives (PigeonHoling).

`objective` (POLICY_OBJECTIVE) is A_BINPACK, LOAD_BALANCE or CONSOLIDATE; `numResources` (NUM_RESOURCES, 2) says how
many of cpu, memory, pods, GPUs and ephemeral storage count. Objectives and points are those of `objectives`; a point
counts 10 in the score. A node that the pod does not fit on scores 0; keeping the pod away is for other plugins.

A_BINPACK learns how much pods differ from every pod that it scores, before it scores it, each attempt once. What it has
learnt is lost when the process ends. Scores depend on all nodes and on all pods before, so they are never kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
import numpy as np

from podium import Cycle, DependsOn, FieldError, FieldPath, Handle, Plugin, PluginError, Scores, filled
from podium.cluster import Nodes
from podium_plugins.pigeon.capacity_and_usage import CapacityAndUsage
from podium_plugins.pigeon.objectives import (
    DemandMoments,
    Floats,
    Placements,
    adaptive_bin_packing,
    consolidate,
    load_balance,
    points,
)

NAME = "PigeonHoling"
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""


Objective = Literal["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"]
NUM_RESOURCES = 2
MOST_RESOURCES = 5
VARIABLES = {"objective": "POLICY_OBJECTIVE", "num_resources": "NUM_RESOURCES"}


class PigeonHolingArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What counts, and how; the variables above stand in for what is left open."""

    objective: Objective | None = None
    num_resources: int | None = None
    """How many of cpu, memory, pods, GPU and ephemeral storage count, from the left."""
    policy_resource_index: int = 0
    """Which of them LOAD_BALANCE and CONSOLIDATE are about, counted from 0."""
    gpu_resource: str = "nvidia.com/gpu"
    usage: Literal["highest", "annotations", "pods"] = "highest"
    """Where usage is taken from: annotations, the requests of the pods on the node, or the higher of both."""
    compared: Literal["cluster", "candidates"] = "cluster"
    """The nodes whose usage is compared: all that take pods, or those the pod may go to."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        count = MOST_RESOURCES if self.num_resources is None else self.num_resources
        if not 1 <= count <= MOST_RESOURCES:
            yield FieldError.invalid(path.child("numResources"), count, f"must be from 1 to {MOST_RESOURCES}")
        elif not 0 <= self.policy_resource_index < count:
            limit = f"must be from 0 to {count - 1}"
            yield FieldError.invalid(path.child("policyResourceIndex"), self.policy_resource_index, limit)
        if not self.gpu_resource:
            yield FieldError.required(path.child("gpuResource"), "such as nvidia.com/gpu")

    @property
    def resource_count(self) -> int:
        return NUM_RESOURCES if self.num_resources is None else self.num_resources


class PigeonHoling(Plugin):
    name = NAME
    trusted = True
    Args = PigeonHolingArgs
    depends_on = DependsOn(kinds=())

    def __init__(self, args: PigeonHolingArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        settings: PigeonHolingArgs = self.args
        self._objective = settings.objective or "A_BINPACK"
        self._prime = settings.policy_resource_index
        count = settings.resource_count
        if self._prime >= count:
            raise PluginError(f"policyResourceIndex is {self._prime}, but only {count} resources count")
        self._whole_cluster = settings.compared == "cluster"
        self._capacity_and_usage = CapacityAndUsage(count, settings.gpu_resource, settings.usage)
        self.moments = DemandMoments(count)
        self._learnt_from: Cycle | None = None

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> None:
        """A cycle that starts over, because kept answers did not do, is one attempt all the same."""
        if self._objective == "A_BINPACK" and cycle is not self._learnt_from:
            self.moments.learn(self._capacity_and_usage.demand(cycle.pod))
            self._learnt_from = cycle

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        placements = self.placements(cycle, nodes)
        return POINTS * points(self.values(placements), placements.feasible)

    def placements(self, cycle: Cycle, nodes: Nodes) -> Placements:
        """The nodes to compare, with those given as candidates."""
        cluster, candidates = cycle.cluster, nodes.rows
        compared = np.zeros(cluster.columns.rows, dtype=np.bool_)
        if self._whole_cluster:
            compared |= cluster.present & ~cluster.unschedulable
        compared[candidates] = True
        return Placements(
            self._capacity_and_usage.capacity(cluster)[:, compared],
            self._capacity_and_usage.usage(cluster)[:, compared],
            self._capacity_and_usage.demand(cycle.pod),
            (np.cumsum(compared) - 1)[candidates],
        )

    def values(self, placements: Placements) -> Floats:
        """float64[candidate]: the objective, less is better; of no meaning where the pod does not fit."""
        if self._objective == "LOAD_BALANCE":
            return load_balance(placements, self._prime)
        if self._objective == "CONSOLIDATE":
            return consolidate(placements, self._prime)
        return adaptive_bin_packing(placements, self.moments)
