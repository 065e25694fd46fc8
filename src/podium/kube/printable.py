"""Makes text from outside safe for a terminal and a log: control characters and escapes become visible.

Names, messages and headers may hold anything: an escape sequence that rewrites a terminal, a line break that forges a
log line, a mark that turns the reading direction around.
"""

from __future__ import annotations

import re

_HIDDEN = "\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
_UNSAFE = re.compile(f"[\x00-\x1f{_HIDDEN}]")
_UNSAFE_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}]")


def printable(text: str) -> str:
    r"""The text on one line, without anything that acts instead of being seen.

    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    return _UNSAFE.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """The same for text that may have several lines, such as a traceback."""
    return _UNSAFE_IN_LINES.sub(_escaped, text)


def printable_json(text: str) -> str:
    """The same for JSON, whose strings hold such characters as escapes."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


LONGEST = 4096
"""Characters of one text from outside that are logged, shown or recorded."""


def shortened(text: str, most: int = LONGEST) -> str:
    """The text, or as much of it as anyone reads: what a server says may have megabytes.

    >>> shortened("abcdefgh", 4), shortened("abcd", 4)
    ('abcd … (8 characters)', 'abcd')
    """
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1] if ord(found[0]) < 0x100 else f"\\u{ord(found[0]):04x}"
