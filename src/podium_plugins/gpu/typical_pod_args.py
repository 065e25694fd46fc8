"""Declares how a class of pods is written in the arguments of plugins."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kubecel.quantity import milli
from podium.config.field import FieldError, FieldPath
from podium.config.types import Int64
from podium_plugins.gpu.request import MOST_DEVICES, NO_GPU, WHOLE, GpuRequest
from podium_plugins.gpu.typical_pods import PodType

MOST_PODS = 10**9


class TypicalPod(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A class of pods; `pods` is how many there are of it, in any unit: only the shares matter."""

    cpu: str | int = 0
    gpu_count: Int64 = 0
    gpu_milli: Int64 = WHOLE
    gpu_card_models: tuple[str, ...] = ()
    pods: Int64 = 1

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        try:
            fine = milli(self.cpu) >= 0
        except ValueError:
            fine = False
        if not fine:
            yield FieldError.invalid(path.child("cpu"), self.cpu, 'must be an amount of cpu such as 4 or "500m"')
        if not 0 <= self.gpu_count <= MOST_DEVICES:
            yield FieldError.invalid(path.child("gpuCount"), self.gpu_count, f"must be between 0 and {MOST_DEVICES}")
        if not 1 <= self.gpu_milli <= WHOLE:
            yield FieldError.invalid(path.child("gpuMilli"), self.gpu_milli, f"must be between 1 and {WHOLE}")
        elif self.gpu_count > 1 and self.gpu_milli < WHOLE:
            yield FieldError.invalid(path.child("gpuMilli"), self.gpu_milli, "must be 1000 for more than one GPU")
        if not 1 <= self.pods <= MOST_PODS:
            yield FieldError.invalid(path.child("pods"), self.pods, f"must be between 1 and {MOST_PODS}")

    def pod_type(self) -> PodType:
        models = tuple(sorted(set(self.gpu_card_models)))
        request = GpuRequest(self.gpu_count, self.gpu_milli, models) if self.gpu_count else NO_GPU
        return PodType(milli(self.cpu), request, self.pods)
