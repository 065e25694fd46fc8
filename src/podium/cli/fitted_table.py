"""Fits tables into the width of a terminal, without cutting a number or a name.

A table that is too wide wraps its texts first. Where that is not enough, it is printed in blocks: some of its columns
at a time, each block with the columns of text that it begins with. A table of figures may be turned round instead: a
figure in each row, and a column for each thing that is compared.
"""

from typing import Any

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from podium.kube.printable import printable

LEAST_TEXT = 16
"""Characters that a column of text has at least, where it has that many, when it is wrapped."""


def natural_width(rows: Table) -> int:
    """The width in which nothing is wrapped."""
    unbounded = Console(width=10_000)
    return Measurement.get(unbounded, unbounded.options, rows).maximum


def turned(rows: Table, width: int) -> Table:
    """The table as it is where it fits, else with its first column as the heading and the others as rows."""
    if natural_width(rows) <= width:
        return rows
    first, *others = rows.columns
    found = _like(rows)
    found.add_column("", no_wrap=True)
    for cell in first.cells:
        found.add_column(cell, justify="right")
    for column in others:
        found.add_row(column.header, *column.cells)
    return found


def blocks(rows: Table, width: int) -> list[Table]:
    """The table in as many parts as it takes for each to fit, or to have one column beside its texts."""
    columns = rows.columns
    if natural_width(rows) <= width:
        return [rows]
    if least_width(rows) <= width or not any(map(_stays_whole, columns)):
        return [_part(rows, columns)]
    needed = [_least(column) for column in columns]
    gap = _gap(rows)
    keys = next(i for i, column in enumerate(columns) if column.justify == "right" or i == len(columns) - 1) or 1
    taken = sum(needed[:keys]) + gap * keys
    found: list[list[Column]] = []
    room = -1
    for column, least in zip(columns[keys:], needed[keys:], strict=True):
        if not found or least + gap > room:
            found.append([*columns[:keys]])
            room = width - taken
        found[-1].append(column)
        room -= least + gap
    parts = [_part(rows, chosen) for chosen in found]
    for later in parts[1:]:
        later.title = None
    return parts


def least_width(rows: Table) -> int:
    """The width below which something would be cut."""
    return sum(map(_least, rows.columns)) + _gap(rows) * len(rows.columns)


def _gap(rows: Table) -> int:
    """What stands between two columns, with room for the edges."""
    widest = sum(max(_width(cell) for cell in (column.header, *column.cells)) for column in rows.columns)
    return -(-(natural_width(rows) - widest) // len(rows.columns))


def _stays_whole(column: Column) -> bool:
    return column.no_wrap or column.justify == "right"


def _least(column: Column) -> int:
    """The width that a column needs: all of it where it holds numbers, room for a few words where it holds texts."""
    widest = max(_width(cell) for cell in (column.header, *column.cells))
    return widest if _stays_whole(column) else min(widest, max(LEAST_TEXT, column.min_width or 0))


def _width(cell: object) -> int:
    text = cell.plain if isinstance(cell, Text) else str(cell)
    return max(map(cell_len, text.split("\n")))


def _part(rows: Table, columns: list[Column]) -> Table:
    """A table of some columns, in which only texts are wrapped."""
    part = _like(rows)
    for column in columns:
        whole = _stays_whole(column)
        part.add_column(
            column.header,
            justify=column.justify,
            style=column.style,
            no_wrap=whole,
            overflow="fold",
            min_width=_least(column) if whole else column.min_width,
        )
    for cells, row in zip(zip(*(column.cells for column in columns), strict=True), rows.rows, strict=True):
        part.add_row(*cells, style=row.style)
    return part


def _like(rows: Table) -> Table:
    return type(rows)(
        title=rows.title,
        title_justify=rows.title_justify,
        title_style=rows.title_style,
        box=rows.box,
        show_edge=rows.show_edge,
        show_header=rows.show_header,
        pad_edge=rows.pad_edge,
        padding=rows.padding,
    )


class PrintableTable(Table):
    """A table whose texts come from outside, each on one line; what has several lines is given as rich's Text."""

    def add_column(self, header: RenderableType = "", *args: Any, **options: Any) -> None:
        super().add_column(_safe(header), *args, **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*(None if cell is None else _safe(cell) for cell in cells), **options)


def _safe(cell: RenderableType) -> RenderableType:
    return printable(cell) if isinstance(cell, str) else cell
