"""Measures how much GPU nodes could give if they were filled with one class of typical pods: the terms H, Hf and Hg."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from podium_plugins.gpu.typical_pods import PodType


class HostedGpu:
    """The GPU that a workload could use of nodes, class by class."""

    def __init__(self, typical: Iterable[PodType]) -> None:
        classes = list(typical)
        self._pods = max(sum(each.pods for each in classes), 1)
        self._gpu = max(sum(each.pods * each.request.total for each in classes), 1)
        with_gpu = (each for each in classes if each.request.gpus)
        self._classes = sorted(
            with_gpu, key=lambda each: (each.request.milli, each.request.gpus, each.request.models, each.cpu)
        )

    def of(
        self,
        cpu: NDArray[np.int64],
        free: NDArray[np.int64],
        has_model: Callable[[Sequence[str]], NDArray[np.bool_]],
    ) -> NDArray[np.float64]:
        """float64[3, nodes]: whole pods, fractions of pods as to cpu, and whole pods weighted by GPU."""
        left = np.maximum(cpu, 0)
        out = np.zeros((3, len(cpu)))
        for ask, request, pods in self._classes:
            copies = (free // request.milli).sum(axis=0) // request.gpus
            if request.models:
                copies = copies * has_model(request.models)
            gpu = request.milli * request.gpus / 1000.0
            many = np.minimum(copies, left // max(ask, 1)) * gpu
            out[0] += pods / self._pods * many
            out[1] += pods / self._pods * (np.minimum(copies, left / max(ask, 1)) * gpu)
            out[2] += pods * (request.milli * request.gpus) / self._gpu * many
        return out
