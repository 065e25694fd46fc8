"""Defines the options that share seeds and measurements out: parts for several machines, workers on this one."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

import typer

Item = TypeVar("Item")

UnitsOption = Annotated[
    str | None,
    typer.Option("--units", metavar="I/N", help="Run only part I of N, such as 1/8; other machines run others."),
]
MeasuringWorkersOption = Annotated[
    int,
    typer.Option(
        "--workers",
        min=1,
        max=256,
        help="Measurements at a time. Several slow each other down unless each has its cores.",
    ),
]


def part_of(items: Sequence[Item], units: str | None) -> list[Item]:
    """Every N-th item from the I-th on.

    >>> part_of("abcde", "2/2"), part_of("ab", None)
    (['b', 'd'], ['a', 'b'])
    """
    from podium_lab.units.run import read_part

    part = read_part(units)
    return list(items[part.number - 1 :: part.of])
