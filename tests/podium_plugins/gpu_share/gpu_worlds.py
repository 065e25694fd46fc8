"""Nodes with GPUs and pods that share them, for tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from podium.kube import Node, Pod
from podium_plugins.gpu.request import COUNT, INDEX, MILLI, MODEL
from tools.kit.builders import make_node, make_pod

POLICIES = ("GpuRandom", "GpuDotProd", "GpuPacking", "GpuClustering", "GpuBestFit", "GpuFGD")
TYPICAL = [
    {"cpu": 2, "gpuCount": 1, "pods": 5},
    {"cpu": 4, "gpuCount": 1, "gpuMilli": 500, "pods": 3},
    {"cpu": 1, "pods": 1},
    {"cpu": 8, "gpuCount": 2, "pods": 1},
]
"""The classes A, B, C and D of the worked example."""


def gpu_node(name: str, gpus: int | str, *, cpu: str | int = 96, model: str = "T4", **rest: Any) -> Node:
    return make_node(name, cpu=cpu, labels={MODEL: model}, allocatable={COUNT: gpus}, **rest)


def gpu_pod(
    name: str,
    milli: int | str | None = None,
    gpus: int | str | None = None,
    *,
    cpu: str | int = 0,
    models: str = "",
    devices: str | None = None,
    node: str = "",
    **rest: Any,
) -> Pod:
    given = {MILLI: milli, COUNT: gpus, MODEL: models or None, INDEX: devices}
    annotations = {key: str(value) for key, value in given.items() if value is not None}
    return make_pod(name, requests={"cpu": cpu}, node=node, metadata={"annotations": annotations}, **rest)


SHARES = st.sampled_from([100, 250, 470, 500, 810])
REQUESTS = st.one_of(
    st.tuples(SHARES, st.just(1)), st.tuples(st.just(1000), st.sampled_from([1, 2, 4])), st.just((0, 0))
)
"""(thousandths, GPUs)"""
