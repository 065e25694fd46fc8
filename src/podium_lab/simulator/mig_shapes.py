"""Lists the shapes that MIG cuts GPUs into, and says which of them fit on one GPU together.

A GPU has 8 memory slices. A shape takes some of them in a row, and may begin only at certain ones; of the 7 compute
slices it takes its own number. Source: the table of profiles and placements that the driver prints
(`nvidia-smi mig -lgip` and `-lgipp`), as NVIDIA's MIG user guide has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

MEMORY_SLICES, COMPUTE_SLICES = 8, 7


class MigShape(NamedTuple):
    """One shape of a GPU instance."""

    name: str
    compute: int
    """Compute slices, of 7."""
    memory: int
    """Memory slices, of 8, in a row."""
    starts: tuple[int, ...]
    """The memory slices that it may begin at."""

    @property
    def milli(self) -> int:
        """The share of a GPU, in thousandths, that it takes from others: its memory slices."""
        return 1000 * self.memory // MEMORY_SLICES


def _shapes(memory: Sequence[str]) -> tuple[MigShape, ...]:
    one, two, four, eight = memory
    return (
        MigShape(f"1g.{one}", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
        MigShape(f"1g.{two}", 1, 2, (0, 2, 4, 6)),
        MigShape(f"2g.{two}", 2, 2, (0, 2, 4)),
        MigShape(f"3g.{four}", 3, 4, (0, 4)),
        MigShape(f"4g.{four}", 4, 4, (0,)),
        MigShape(f"7g.{eight}", 7, 8, (0,)),
    )


MIG_SHAPES = {
    "A100-40GB": _shapes(("5gb", "10gb", "20gb", "40gb")),
    "A100-80GB": _shapes(("10gb", "20gb", "40gb", "80gb")),
    "H100-80GB": _shapes(("10gb", "20gb", "40gb", "80gb")),
    "H200-141GB": _shapes(("18gb", "35gb", "71gb", "141gb")),
}
"""The shapes of each GPU model, the smallest first."""


@lru_cache(maxsize=1 << 14)
def fit_together(shapes: tuple[MigShape, ...]) -> bool:
    """Whether instances of these shapes can stand on one GPU at the same time, wherever each begins.

    >>> small, _, two, three, four, whole = MIG_SHAPES["A100-40GB"]
    >>> [fit_together(each) for each in ((small,) * 7, (small,) * 8, (three, four), (four, four), (two,) * 3)]
    [True, False, True, False, True]
    """
    if sum(shape.compute for shape in shapes) > COMPUTE_SLICES:
        return False
    largest_first = sorted(shapes, key=lambda shape: -shape.memory)
    return _placed(tuple(largest_first), 0)


def _placed(shapes: tuple[MigShape, ...], taken: int) -> bool:
    """Whether the shapes fit beside the memory slices that are taken, one bit each."""
    if not shapes:
        return True
    shape, *others = shapes
    for start in shape.starts:
        slices = ((1 << shape.memory) - 1) << start
        if not slices & taken and _placed(tuple(others), taken | slices):
            return True
    return False
