"""Writes the nine lists that no policy was trained on, made of the four published ones:

python -m tests.podium_lab.learning.unseen_lists DIR OUT
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

Pod = dict[str, str]
PODS = 8152


def main() -> int:
    data, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for number, (name, (source, make)) in enumerate(UNSEEN.items()):
        with (data / f"openb_pod_list_{source}.csv").open(newline="") as file:
            pods = list(csv.DictReader(file))
        made = make(pods, np.random.default_rng([number, 1847]))
        with (out / f"{name}.csv").open("w", newline="") as file:
            rows = csv.DictWriter(file, made[0])
            rows.writeheader()
            rows.writerows({**pod, "name": f"{name}-{i:05d}"} for i, pod in enumerate(made))
    return 0


def _size(pod: Pod) -> str:
    if pod["num_gpu"] == "0":
        return "none"
    return "several" if pod["num_gpu"] != "1" else "share" if int(pod["gpu_milli"]) < 1000 else "one"


def _drawn(number: int = PODS, **weights: float) -> Callable[[list[Pod], np.random.Generator], list[Pod]]:
    """Pods drawn with replacement, some sizes more or less often than they come."""

    def make(pods: list[Pod], rng: np.random.Generator) -> list[Pod]:
        each = np.array([weights.get(_size(pod), 1.0) for pod in pods])
        return [pods[i] for i in rng.choice(len(pods), number, p=each / each.sum())]

    return make


def _a_third_of_the_models(pods: list[Pod], rng: np.random.Generator) -> list[Pod]:
    named = rng.random(len(pods)) < 1 / 3
    return [pod if keeps else {**pod, "gpu_spec": ""} for pod, keeps in zip(pods, named, strict=True)]


def _larger(pods: list[Pod], _rng: np.random.Generator) -> list[Pod]:
    return [
        {**pod, "cpu_milli": str(int(pod["cpu_milli"]) * 11 // 10), "memory_mib": str(int(pod["memory_mib"]) * 3 // 2)}
        for pod in pods
    ]


UNSEEN = {
    "drawn": ("default", _drawn()),
    "third-of-models": ("gpuspec33", _a_third_of_the_models),
    "four-fifths-share": ("default", _drawn(share=3.3)),
    "all-share": ("default", _drawn(share=2.3, one=0, several=0)),
    "several-gpus": ("default", _drawn(6400, several=7.0)),
    "half-without-gpu": ("default", _drawn(none=0.5)),
    "more-without-gpu": ("default", _drawn(none=2.5)),
    "far-more-without-gpu": ("default", _drawn(none=4.0)),
    "larger": ("gpuspec33", _larger),
}

if __name__ == "__main__":
    sys.exit(main())
