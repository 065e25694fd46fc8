from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.bench.growth import CASES, exponent
from tools.bench.suite import WORKLOADS


@given(
    slope=st.floats(-2, 3), factor=st.floats(1e-3, 1e6), nodes=st.sets(st.integers(1, 100_000), min_size=2, max_size=6)
)
def test_the_exponent_of_a_power_law_is_found(slope: float, factor: float, nodes: set[int]) -> None:
    points = [(size, factor * size**slope) for size in sorted(nodes)]
    assert exponent(points) == pytest.approx(slope, abs=1e-5)


def test_noise_is_averaged_as_least_squares_do() -> None:
    sizes, costs = [1000.0, 5000.0, 20_000.0], [90.0, 110.0, 95.0]
    slope, _ = np.polyfit(np.log(sizes), np.log(costs), 1)
    assert exponent(list(zip(sizes, costs, strict=True))) == pytest.approx(slope)


def test_one_size_has_no_exponent() -> None:
    with pytest.raises(ValueError, match="at least two sizes"):
        exponent([(1000, 5.0), (1000, 6.0)])


def test_every_case_exists() -> None:
    assert set(CASES) <= {workload.case for workload in WORKLOADS}
