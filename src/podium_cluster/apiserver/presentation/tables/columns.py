"""Declares what a table of one kind is made of: its columns, and how an object becomes one row of cells.

A column of priority 1 is shown by `-o wide` only; the server sends every column and the client chooses. The column of
format "name" is the one a client prefixes with the kind where several kinds are shown together.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from podium.kube.json_object import JsonObject

Cells = list[Any]


class TableColumn(NamedTuple):
    name: str
    description: str
    type: str = "string"
    priority: int = 0
    format: str = ""

    def definition(self) -> JsonObject:
        """The column as the API writes it."""
        return self._asdict()


class KindTable(NamedTuple):
    columns: tuple[TableColumn, ...]
    cells: Callable[[JsonObject, datetime], Cells]


Tables = dict[tuple[str, str], KindTable]
"""By group and kind."""

NAME: Final = TableColumn("Name", "The object's name, unique among its kind and namespace.", format="name")
AGE: Final = TableColumn("Age", "How long ago the object was created.")
CREATED_AT: Final = TableColumn("Created At", "When the object was created.", type="date")

CONTAINERS: Final = TableColumn("Containers", "The names of the template's containers.", priority=1)
IMAGES: Final = TableColumn("Images", "The images of the template's containers.", priority=1)
SELECTOR: Final = TableColumn("Selector", "Which pods belong to the object.", priority=1)


def wide(name: str, description: str) -> TableColumn:
    """A column that `-o wide` shows."""
    return TableColumn(name, description, priority=1)


def integer(name: str, description: str) -> TableColumn:
    return TableColumn(name, description, type="integer")


def boolean(name: str, description: str) -> TableColumn:
    return TableColumn(name, description, type="boolean")
