"""Reads key presses from what a terminal sends: characters stand for themselves, the others have names.

A terminal sends an arrow as several bytes that begin with Escape, and Escape alone as one. They usually arrive at once;
what is left over as the beginning of a key is Escape if nothing follows for a moment.
"""

import codecs
import re
from typing import Final

ENTER, ESCAPE, TAB, BACK_TAB, BACKSPACE = "Enter", "Esc", "Tab", "Shift-Tab", "Backspace"
UP, DOWN, LEFT, RIGHT, HOME, END, PAGE_UP, PAGE_DOWN = "Up", "Down", "Left", "Right", "Home", "End", "PgUp", "PgDn"
REDRAW, CLEAR, END_OF_INPUT = "Ctrl-L", "Ctrl-U", "Ctrl-D"

_SEQUENCES: Final = {
    "A": UP,
    "B": DOWN,
    "C": RIGHT,
    "D": LEFT,
    "H": HOME,
    "F": END,
    "Z": BACK_TAB,
    "1~": HOME,
    "7~": HOME,
    "4~": END,
    "8~": END,
    "5~": PAGE_UP,
    "6~": PAGE_DOWN,
    "M": ENTER,
}
_CONTROLS: Final = {
    "\r": ENTER,
    "\n": ENTER,
    "\t": TAB,
    "\x7f": BACKSPACE,
    "\b": BACKSPACE,
    "\x0c": REDRAW,
    "\x15": CLEAR,
    "\x04": END_OF_INPUT,
}
_PRESS: Final = re.compile(r"\x1b(?:\[(?P<csi>[0-9;?<]*[ -/]*[@-~])|O(?P<ss3>.))|(?P<one>.)", re.DOTALL)
_BEGUN: Final = re.compile(r"\x1b(?:\[[0-9;?<]*[ -/]*|O)?\Z")


class KeyReader:
    """Turns bytes into keys, across reads."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def unfinished(self) -> bool:
        """Whether the last bytes may be the beginning of a key."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[str]:
        text = self._rest + self._decoder.decode(data)
        begun = _BEGUN.search(text)
        self._rest = begun[0] if begun else ""
        presses = _PRESS.finditer(text, 0, len(text) - len(self._rest))
        return [key for press in presses if (key := _key(press))]

    def finish(self) -> list[str]:
        """What was begun, now that nothing follows it."""
        rest, self._rest = self._rest, ""
        return [ESCAPE] if rest == "\x1b" else []


def _key(press: re.Match[str]) -> str:
    """The name of the key; empty for one that has none here."""
    one = press["one"]
    if one is None:
        return _SEQUENCES.get(press["csi"] or press["ss3"], "")
    if one == "\x1b":
        return ESCAPE
    return _CONTROLS.get(one) or (one if one.isprintable() else "")
