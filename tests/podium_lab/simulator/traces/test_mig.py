"""MIG shapes: which fit together, and lists of them that the other commands read."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from podium_lab.simulator.nodes import openb_nodes
from podium_lab.simulator.traces.mig_lists import MEMORY_SLICES, MIG_SHAPES, MigShape, fit_together
from podium_lab.simulator.traces.openb import read_list
from tests.podium.cli.command import podium


def stands(shapes: tuple[MigShape, ...], taken: frozenset[int] = frozenset()) -> bool:
    """The same by trying everything, slice by slice."""
    if not shapes:
        return True
    first, *others = shapes
    spans = [frozenset(range(start, start + first.memory)) for start in first.starts]
    return any(not span & taken and stands(tuple(others), taken | span) for span in spans)


@pytest.mark.parametrize("gpu", MIG_SHAPES)
def test_what_fits_together_is_what_some_order_of_starts_allows(gpu: str) -> None:
    for count in (1, 2, 3, 4):
        for shapes in combinations_with_replacement(MIG_SHAPES[gpu], count):
            expected = stands(shapes) and sum(shape.compute for shape in shapes) <= 7
            assert fit_together(shapes) == expected, [shape.name for shape in shapes]


def test_shapes_stay_within_their_gpu() -> None:
    for shapes in MIG_SHAPES.values():
        assert all(max(shape.starts) + shape.memory <= MEMORY_SLICES for shape in shapes)
        assert [shape.milli for shape in shapes] == [125, 250, 250, 500, 500, 1000]


def test_lists_are_read_as_openb_and_are_the_same_each_time(tmp_path: Path) -> None:
    asked = ("workload", "mig", "--nodes", "3", "--pods", "50", "--seed", "7")
    for name in ("one", "two"):
        ran = podium(*asked, str(tmp_path / name))
        assert ran.code == 0, ran.err
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert files[0] == files[1]
    assert len(openb_nodes(tmp_path / "one" / "openb_node_list_gpu_node.csv")) == 3
    pods = read_list(tmp_path / "one" / "openb_pod_list_mig.csv")
    assert {pod.milli for pod in pods} <= {0, 125, 250, 500, 1000}
    assert len(pods) == 50


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--gpu", "T4"), 'no table of MIG shapes for "T4"'),
        (("--mix", "5g=1"), "mix: 5g=1"),
        (("--mix", "1g"), "is no size with a weight"),
        (("--mix", "1g=0"), "at least one weight above 0"),
    ],
)
def test_bad_options_are_one_sentence(tmp_path: Path, options: tuple[str, str], expected: str) -> None:
    ran = podium("workload", "mig", str(tmp_path / "out"), *options)
    assert ran.code == 2
    assert expected in ran.err
