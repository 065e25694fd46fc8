"""Finds the typical pods of a workload: the few classes of requests that make up nearly all of it.

Pods are grouped by cpu, thousandths per GPU, number of GPUs and models. The classes are sorted by the number of their
pods, the largest first (of equals: more cpu, then more milli, GPUs and models first), and chosen until they cover
95 % of all pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from podium_plugins.gpu.request import GpuRequest

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
