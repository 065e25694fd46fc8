"""Finds the typical pods of a workload: the few classes of requests that make up nearly all of it.

Pods are grouped by cpu, thousandths per GPU, number of GPUs and models. The classes are sorted by the number of their
pods, the largest first (of equals: more cpu, then more milli, GPUs and models first), and chosen until they cover
95 % of all pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from podium import FieldError, FieldPath, Int64
from podium.kube import milli
from podium_plugins.gpu.request import MOST_DEVICES, NO_GPU, WHOLE, GpuRequest

COVERED_PERCENT = 95


class PodType(NamedTuple):
    """A class of pods: thousandths of cpu, what they ask of GPUs, and how many there are."""

    cpu: int
    request: GpuRequest
    pods: int


def typical_pods(pods: Iterable[tuple[int, GpuRequest]]) -> tuple[PodType, ...]:
    """The classes that cover most of some pods, given as (thousandths of cpu, GPU request).

    >>> half, whole = GpuRequest(1, 500), GpuRequest(1, 1000)
    >>> [kind.pods for kind in typical_pods([(4000, half)] * 15 + [(2000, whole)] * 4 + [(8000, whole)])]
    [15, 4]
    """
    return most_of(Counter(pods))


def most_of(numbers: Mapping[tuple[int, GpuRequest], int]) -> tuple[PodType, ...]:
    """The same of pods that are counted already, by (thousandths of cpu, GPU request)."""
    wanted = sum(numbers.values()) * COVERED_PERCENT
    chosen: list[PodType] = []
    covered = 0
    for cpu, request in sorted(numbers, key=lambda each: (numbers[each], *_size(*each)), reverse=True):
        if covered * 100 >= wanted:
            break
        chosen.append(PodType(cpu, request, numbers[cpu, request]))
        covered += chosen[-1].pods
    return tuple(chosen)


def grown(pods: int, known: int) -> bool:
    """Whether so many pods are enough more than those that were known for typical pods to be found again.

    >>> grown(1, 0), grown(12, 10), grown(13, 10)
    (True, False, True)
    """
    return 10 * pods >= 13 * known


def _size(cpu: int, request: GpuRequest) -> tuple[int, int, int, str]:
    return cpu, request.milli, request.gpus, "|".join(request.models)


MOST_PODS = 10**9


class TypicalPod(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A class of pods, as arguments write it; `pods` is how many there are, in any unit: only the shares matter."""

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
