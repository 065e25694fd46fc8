"""Holds what pods are to be expected: given once, or counted from the pods that were seen.

Typical pods are found again when the count has grown by 30 %. A pod counts when it is first heard of, whatever comes of
it. `drift` is how far the shares of sorts of pods lie from those that a policy was trained on: half the sum of
differences, 0 where they are equal, 1 where they have nothing in common. A sort is coarser than a class: the group of
pods, and their cores per GPU (a share counts as one; without GPUs: cores) by powers of two. Of exact classes no two
clusters have any in common, be it for a tenth of a core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from podium.kube.documents import FILE, DocumentError, read_json
from podium_lab.learned.policy_file import PolicyError
from podium_plugins.gpu.request import WHOLE, GpuRequest
from podium_plugins.gpu.terms import group_of
from podium_plugins.gpu.typical_pods import PodType, TypicalPod, grown, most_of

FEW = 500
"""Pods below which counted shares say little about drift."""

PodClass = tuple[int, GpuRequest]
PodSort = tuple[int, int]
"""Group, and the power of two of cores per GPU."""


class SeenPods:
    """Numbers of pods by class; `generation` moves when the typical ones are found again."""

    def __init__(self, given: Iterable[TypicalPod] | None) -> None:
        self._counts: Counter[PodClass] = Counter()
        self.counted = given is None
        self.number = self._known = 0
        self.generation = 0
        self.typical: tuple[PodType, ...] = ()
        self.classes: Mapping[PodClass, int] = {}
        """All classes, as of the last time."""
        for each in given or ():
            cpu, request, pods = each.pod_type()
            self._counts[cpu, request] += pods
        if given is not None:
            self._find()

    def add(self, pod: PodClass) -> None:
        """Count a pod."""
        self._counts[pod] += 1
        self.number += 1
        if grown(self.number, self._known):
            self._known = self.number
            self._find()

    def _find(self) -> None:
        self.classes = dict(self._counts)
        self.typical = most_of(self.classes)
        self.generation += 1

    def drift(self, trained: Iterable[TypicalPod]) -> float:
        """The distance of what was counted from the classes of a training; 0 while too little is known."""
        if not self.counted or self.number < FEW:
            return 0.0
        before: Counter[PodSort] = Counter()
        for each in trained:
            cpu, request, pods = each.pod_type()
            before[sort_of((cpu, request))] += pods
        if not before:
            return 0.0
        now: Counter[PodSort] = Counter()
        for pod, number in self.classes.items():
            now[sort_of(pod)] += number
        total, seen = before.total(), now.total()
        return sum(abs(before[each] / total - now[each] / seen) for each in {*before, *now}) / 2


def sort_of(pod: PodClass) -> PodSort:
    """What sort of pod it is.

    >>> sort_of((11_000, GpuRequest(1, 1000, ()))), sort_of((1_000, GpuRequest(1, 250, ("T4",))))
    ((2, 4), (1, 1))
    """
    cpu, request = pod
    return group_of(request.gpus, request.milli), (cpu // max(request.total, WHOLE)).bit_length()


def read_classes(path: str) -> tuple[TypicalPod, ...]:
    """The classes of pods in a JSON file; raises PolicyError."""
    try:
        return msgspec.convert(read_json(Path(path).read_bytes(), bounds=FILE), tuple[TypicalPod, ...])
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}") from None
    except (DocumentError, msgspec.ValidationError) as error:
        raise PolicyError(f"{path}: expected a list of classes of pods: {error}", "schema") from None
