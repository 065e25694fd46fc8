"""Changes what the user of the live view looks at, key by key."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

from podium_cluster.up.live_view import keys
from podium_cluster.up.live_view.rows import Page, Row, Rows, Section, SortBy, name_of

_STEP: Final = 10
"""Rows that PgUp and PgDn go, in a list."""


class Effect(enum.Enum):
    """What a key asks of the screen."""

    NOTHING = "nothing"
    END = "end the cluster"
    OPEN = "open a page on the selected row"
    HELP = "open the help"
    REDRAW = "draw everything anew"


class Browsing(NamedTuple):
    """The row that is selected is found by its name; when that is gone, the one in its place is selected."""

    section: Section = Section.NODES
    place: int = 0
    name: str = ""
    sort: SortBy = SortBy.NAME
    needle: str = ""
    typing: bool = False
    """Whether keys go into the filter."""
    page: Page | None = None
    top: int = 0
    """The first line of the page that is shown."""

    def selected(self, rows: Sequence[Row]) -> int:
        """The place of the selected row among those of its section."""
        if self.place < len(rows) and name_of(rows[self.place]) == self.name:
            return self.place
        found = next((place for place, row in enumerate(rows) if name_of(row) == self.name), self.place)
        return max(0, min(found, len(rows) - 1))

    def settled(self, rows: Rows) -> Browsing:
        """Where the list that was looked at has no rows: at the first one that has some."""
        if rows.of(self.section):
            return self
        return next((self._replace(section=each, place=0, name="") for each in Section if rows.of(each)), self)


def press(browsing: Browsing, key: str, rows: Rows, body: int, width: int) -> tuple[Browsing, Effect]:
    """`body` is how many lines of a page the terminal shows."""
    if key == keys.REDRAW:
        return browsing, Effect.REDRAW
    if browsing.typing:
        return _type(browsing, key), Effect.NOTHING
    if browsing.page is not None:
        return _on_page(browsing, key, len(browsing.page.lines(width)), body), Effect.NOTHING
    browsing = browsing.settled(rows)
    match key:
        case "q" | keys.END_OF_INPUT:
            return browsing, Effect.END
        case "?" | "h":
            return browsing, Effect.HELP
        case "/":
            return browsing._replace(typing=True), Effect.NOTHING
        case "s":
            sorts = list(SortBy)
            return browsing._replace(sort=sorts[(sorts.index(browsing.sort) + 1) % len(sorts)]), Effect.NOTHING
        case keys.ESCAPE:
            return browsing._replace(needle=""), Effect.NOTHING
        case keys.ENTER:
            return browsing, Effect.OPEN if rows.of(browsing.section) else Effect.NOTHING
        case keys.TAB | keys.BACK_TAB:
            return _to_section(browsing, rows, 1 if key == keys.TAB else -1), Effect.NOTHING
    return _move(browsing, key, rows), Effect.NOTHING


def _type(browsing: Browsing, key: str) -> Browsing:
    match key:
        case keys.ENTER:
            return browsing._replace(typing=False)
        case keys.ESCAPE:
            return browsing._replace(typing=False, needle="")
        case keys.BACKSPACE:
            return browsing._replace(needle=browsing.needle[:-1])
        case keys.CLEAR:
            return browsing._replace(needle="")
    return browsing._replace(needle=browsing.needle + key) if len(key) == 1 else browsing


def _on_page(browsing: Browsing, key: str, lines: int, body: int) -> Browsing:
    match key:
        case keys.ESCAPE | "q" | keys.LEFT | keys.BACKSPACE:
            return browsing._replace(page=None, top=0)
        case keys.HOME | "g":
            top = 0
        case keys.END | "G":
            top = lines
        case _:
            page = max(1, body - 1)
            steps = {keys.UP: -1, "k": -1, keys.DOWN: 1, "j": 1, keys.PAGE_UP: -page, keys.PAGE_DOWN: page, " ": page}
            top = browsing.top + steps.get(key, 0)
    return browsing._replace(top=max(0, min(top, lines - body)))


def _move(browsing: Browsing, key: str, rows: Rows) -> Browsing:
    """Up and down in the list; past its ends, into the next one."""
    here = rows.of(browsing.section)
    at = browsing.selected(here)
    steps = {keys.UP: -1, "k": -1, keys.DOWN: 1, "j": 1}
    if key in steps:
        if not 0 <= at + steps[key] < len(here):
            return _to_section(browsing, rows, steps[key], wraps=False)
        return _at(browsing, here, at + steps[key])
    jumps = {
        keys.PAGE_UP: at - _STEP,
        keys.PAGE_DOWN: at + _STEP,
        keys.HOME: 0,
        "g": 0,
        keys.END: len(here),
        "G": len(here),
    }
    return _at(browsing, here, jumps[key]) if key in jumps and here else browsing


def _at(browsing: Browsing, rows: Sequence[Row], place: int) -> Browsing:
    place = max(0, min(place, len(rows) - 1))
    return browsing._replace(place=place, name=name_of(rows[place]))


def _to_section(browsing: Browsing, rows: Rows, step: int, *, wraps: bool = True) -> Browsing:
    """The next section that has rows: at its first row, or at its last one on the way up."""
    sections = list(Section)
    start = sections.index(browsing.section)
    for distance in range(1, len(sections)):
        position = start + step * distance
        if not wraps and not 0 <= position < len(sections):
            break
        section = sections[position % len(sections)]
        if found := rows.of(section):
            last = step < 0 and not wraps
            return _at(browsing._replace(section=section), found, len(found) - 1 if last else 0)
    return browsing
