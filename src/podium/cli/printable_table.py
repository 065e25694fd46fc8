"""Defines the table that commands print, whose cells show control characters instead of sending them."""

from typing import Any

from rich.console import RenderableType
from rich.table import Table

from podium.kube.printable import printable


class PrintableTable(Table):
    """A table whose texts come from outside, each on one line; what has several lines is given as rich's Text."""

    def add_column(self, header: RenderableType = "", *args: Any, **options: Any) -> None:
        super().add_column(_safe(header), *args, **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*(None if cell is None else _safe(cell) for cell in cells), **options)


def _safe(cell: RenderableType) -> RenderableType:
    return printable(cell) if isinstance(cell, str) else cell
