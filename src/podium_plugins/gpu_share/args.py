"""Declares the arguments of GpuFGD: the typical pods of the workload to come."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podium.config.field import FieldError, FieldPath
from podium_plugins.gpu.typical_pod_args import TypicalPod


class GpuFGDArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    typical_pods: tuple[TypicalPod, ...] = ()

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.typical_pods:
            detail = "the classes of pods that are to come: cpu, gpuCount, gpuMilli, gpuCardModels, pods"
            yield FieldError.required(path.child("typicalPods"), detail)
        for i, each in enumerate(self.typical_pods):
            yield from each.validate(path.child("typicalPods").index(i))
