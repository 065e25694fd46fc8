"""The worked example of the openb fact sheet, and that both forms agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_plugins.gpu.fragmentation import Fragmentation
from podium_plugins.gpu.request import NO_GPU, GpuRequest
from podium_plugins.gpu.typical_pods import PodType, typical_pods

A, B, C, D = (
    PodType(2000, GpuRequest(1, 1000), 5),
    PodType(4000, GpuRequest(1, 500), 3),
    PodType(1000, NO_GPU, 1),
    PodType(8000, GpuRequest(2, 1000), 1),
)
CASES = {
    "N1 before": (6000, (400, 1000), (400, 400, 1400, 1400), 600),
    "N1 after": (2000, (400, 500), (900, 900, 900, 900), 900),
    "N2 before": (8000, (0, 600), (600, 0, 600, 600), 420),
    "N2 after": (4000, (0, 100), (100, 100, 100, 100), 100),
}


def amount(workload: list[PodType], cpu: int, free: tuple[int, ...], model: str = "") -> int:
    """By both forms."""
    fragmentation = Fragmentation(workload)
    one = fragmentation.amount(fragmentation.level(cpu), free, fragmentation.model_group(model))
    matrix = np.array(free, dtype=np.int64)[:, np.newaxis]
    many = fragmentation.amounts(np.array([cpu]), matrix, lambda models: np.array([model in models]))
    assert many.tolist() == [one]
    return one


@pytest.mark.parametrize("case", CASES)
def test_the_worked_example(case: str) -> None:
    cpu, free, by_class, mean = CASES[case]
    assert tuple(amount([each._replace(pods=1)], cpu, free) for each in (A, B, C, D)) == by_class
    assert amount([A, B, C, D], cpu, free) == 10 * mean


def test_a_model_that_a_class_does_not_allow_is_fragmented() -> None:
    picky = [PodType(1000, GpuRequest(1, 1000, ("T4",)), 1)]
    assert amount(picky, 4000, (1000,), "T4") == 0
    assert amount(picky, 4000, (1000,), "P100") == 1000


KINDS = st.builds(
    PodType,
    st.sampled_from([0, 1000, 4000]),
    st.one_of(
        st.just(NO_GPU),
        st.builds(GpuRequest, st.just(1), st.sampled_from([100, 470, 1000]), st.sampled_from([(), ("T4",)])),
        st.builds(GpuRequest, st.sampled_from([1, 2, 4]), st.just(1000)),
    ),
    st.integers(1, 9),
)


@given(
    st.lists(KINDS, max_size=6),
    st.integers(-100, 5000),
    st.lists(st.sampled_from([0, 100, 469, 470, 1000]), max_size=8).map(lambda free: tuple(sorted(free))),
    st.sampled_from(["T4", "P100", ""]),
)
def test_both_forms_follow_the_definition(workload: list[PodType], cpu: int, free: tuple[int, ...], model: str) -> None:
    def fragmented(kind: PodType) -> int:
        enough = [left for left in free if left >= kind.request.milli]
        allowed = not kind.request.models or model in kind.request.models
        fits = kind.request.gpus and kind.cpu <= cpu and len(enough) >= kind.request.gpus and allowed
        return sum(free) - sum(enough) if fits else sum(free)

    assert amount(workload, cpu, free, model) == sum(kind.pods * fragmented(kind) for kind in workload)


def test_typical_pods_cover_95_percent_the_largest_classes_first() -> None:
    half, whole = GpuRequest(1, 500), GpuRequest(1, 1000)
    pods = [(1000, half)] * 90 + [(2000, half)] * 5 + [(2000, whole)] * 5
    assert typical_pods(pods) == (PodType(1000, half, 90), PodType(2000, whole, 5))
