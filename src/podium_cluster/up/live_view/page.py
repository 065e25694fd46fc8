"""Draws a page of text that covers the view until it is left: an explanation, a node, a message, the help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from io import StringIO
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

from podium.kube.printable import printable_lines

_WRAPPING: Final = Console(file=StringIO(), width=80)


class Page(NamedTuple):
    """`lines` makes its lines for a width: none is longer."""

    title: str
    lines: Callable[[int], list[Text]]


def text_page(title: str, text: str) -> Page:
    """Of text from anywhere."""
    return _page(title, lambda _width: map(Text, printable_lines(text).splitlines()))


def rendered_page(title: str, render: Callable[[int], str]) -> Page:
    """Of text that Podium makes for a width, in which escape sequences are colours."""
    return _page(title, lambda width: map(Text.from_ansi, render(width).splitlines()))


def _page(title: str, lines: Callable[[int], Iterable[Text]]) -> Page:
    @lru_cache(maxsize=1)
    def wrapped(width: int) -> list[Text]:
        found: list[Text] = []
        for line in lines(width):
            found += line.wrap(_WRAPPING, max(1, width), overflow="fold", tab_size=4) or [Text()]
        return found

    return Page(title, wrapped)
