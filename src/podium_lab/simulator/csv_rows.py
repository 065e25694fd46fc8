"""Reads CSV files whose every row counts: one that cannot be read is an error with file, line and column."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TextIO, TypeVar

from podium_lab.simulator.scenario import ScenarioError

MOST_MISTAKES = 20
"""Mistakes that are shown; a file with more is the wrong file."""
LONGEST_FIELD = 1_000_000

T = TypeVar("T")


class _Reader(Protocol):
    @property
    def line_num(self) -> int: ...


class RowError(Exception):
    """One field that cannot be read."""


class CsvRow:
    """One line of a file: its fields by column."""

    __slots__ = ("_columns", "_fields", "line")

    def __init__(self, columns: dict[str, int], fields: list[str], line: int) -> None:
        self._columns = columns
        self._fields = fields
        self.line = line

    @property
    def width(self) -> int:
        """How many fields it has."""
        return len(self._fields)

    def has(self, column: str) -> bool:
        return column in self._columns and self._columns[column] < len(self._fields)

    def text(self, column: str) -> str:
        return self._fields[self._columns[column]].strip() if self.has(column) else ""

    def required(self, column: str) -> str:
        text = self.text(column)
        if not text:
            raise self.error(column, "a value")
        return text

    def whole(self, column: str, least: int = 0, most: int = 2**53) -> int:
        text = self.text(column)
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most or "_" in text:
            raise self.error(column, f"a whole number of {least} or more" if most == 2**53 else f"{least} to {most}")
        return number

    def number(self, column: str, least: float = 0.0) -> float:
        text = self.text(column)
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not least <= number < float("inf") or "_" in text:
            raise self.error(column, f"a number of {least:g} or more")
        return number

    def one_of(self, column: str, words: Sequence[str]) -> str:
        text = self.text(column)
        if text not in words:
            raise self.error(column, f"one of {', '.join(words)}")
        return text

    def error(self, column: str, expected: str) -> RowError:
        number = self._columns[column] + 1
        got = f'got "{self.text(column)[:40]}"' if self.has(column) else "the row ends before it"
        named = f"column {number}" if column == str(number) else f"column {number} ({column})"
        return RowError(f"{named}: expected {expected}, {got}")


def read_rows(
    path: Path,
    make: Callable[[CsvRow], T],
    *,
    required: Sequence[str] = (),
    widths: Sequence[int] = (),
) -> list[T]:
    """What `make` makes of each row. With `required`, the first line names columns, among them these; with `widths`,
    there is no such line, columns go by number ("1", …) and a row has one of these widths."""
    made: list[T] = []
    mistakes: list[str] = []
    count = 0
    for row, width_problem in _rows(path, required, widths):
        try:
            if width_problem is not None:
                raise RowError(width_problem)
            made.append(make(row))
        except RowError as error:
            count += 1
            if count <= MOST_MISTAKES:
                mistakes.append(f"{path}:{row.line}: {error}")
    if count > MOST_MISTAKES:
        mistakes.append(f"{path}: {count - MOST_MISTAKES} more rows cannot be read")
    if mistakes:
        raise ScenarioError(mistakes)
    return made


def header_of(path: Path) -> list[str]:
    """The fields of the first line that has any."""
    with _opened(path) as file, _named_errors(path, reader := csv.reader(file, strict=True)):
        return [field.strip() for field in next(filter(None, reader), [])]


def _rows(path: Path, required: Sequence[str], widths: Sequence[int]) -> Iterator[tuple[CsvRow, str | None]]:
    with _opened(path) as file, _named_errors(path, reader := csv.reader(file, strict=True)):
        if widths:
            columns = {str(i + 1): i for i in range(max(widths))}
            allowed = set(widths)
        else:
            names = [field.strip() for field in next(reader, [])]
            missing = [name for name in required if name not in names]
            if missing:
                found = ", ".join(names)[:200] or "nothing"
                raise ScenarioError(f"{path}:1: expected the columns {', '.join(missing)} too, got {found}")
            columns = {name: i for i, name in enumerate(names)}
            allowed = {len(names)}
        for fields in reader:
            if not fields:
                continue
            problem = None
            if len(fields) not in allowed:
                wanted = " or ".join(str(width) for width in sorted(allowed))
                end = min(len(fields), max(allowed)) + 1
                problem = f"column {end}: expected {wanted} fields in a row, got {len(fields)}"
            yield CsvRow(columns, fields, reader.line_num), problem


@contextmanager
def _named_errors(path: Path, reader: _Reader) -> Iterator[None]:
    """What is no text, or no CSV, is an error of the file."""
    try:
        yield
    except csv.Error as error:
        raise ScenarioError(f"{path}:{reader.line_num}: column 1: expected a row of CSV: {error}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}:{reader.line_num + 1}: column 1: expected UTF-8 text") from None


def _opened(path: Path) -> TextIO:
    csv.field_size_limit(LONGEST_FIELD)
    return path.open(encoding="utf-8-sig", newline="")
