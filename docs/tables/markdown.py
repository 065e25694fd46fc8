"""Writes Markdown: tables whose cells may hold anything, code and headings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def code(text: str) -> str:
    """The text as code; nothing where there is none."""
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Text in which nothing is markup, but `code` stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts = [text]
    for index in range(0, len(parts), 2):
        parts[index] = "".join(f"\\{letter}" if letter in "*_<>[]#$~" else letter for letter in parts[index])
    return "`".join(parts)


def value(given: Any) -> str:
    """A default as it would stand in a file."""
    return code(json.dumps(given, ensure_ascii=False))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
