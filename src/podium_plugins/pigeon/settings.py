"""Types the arguments of PigeonHoling, and the environment variables that stand in for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from podium.config.field import FieldError, FieldPath

Objective = Literal["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"]
NUM_RESOURCES = 2
MOST_RESOURCES = 5
VARIABLES = {"objective": "POLICY_OBJECTIVE", "num_resources": "NUM_RESOURCES"}


class PigeonHolingArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
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
