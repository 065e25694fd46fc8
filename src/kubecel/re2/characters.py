"""Represents sets of characters as sorted ranges of code points: classes, escapes, case folding."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

Ranges = tuple[tuple[int, int], ...]

LAST: Final = 0x10FFFF
ANY: Final[Ranges] = ((0, LAST),)
DIGIT: Final[Ranges] = ((48, 57),)
SPACE: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
PERL: Final = {"d": DIGIT, "s": SPACE, "w": WORD}
POSIX: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_LARGEST_FOLDED: Final = 10_000
# Letters whose other case is not what str.lower and str.upper say of them.
_MORE_CASES: Final = {"k": "\u212a", "K": "\u212a", "s": "\u017f", "S": "\u017f"}


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same characters in sorted ranges that neither overlap nor touch."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def inverse(ranges: Ranges) -> Ranges:
    """All other characters.

    >>> inverse(((0, 8), (10, 1114111)))
    ((9, 9),)
    """
    found, start = [], 0
    for low, high in union(ranges):
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        found.append((start, LAST))
    return tuple(found)


def folded(ranges: Ranges) -> Ranges:
    """The characters with their upper and lower cases. Of very large ranges only the ASCII letters are looked at: the
    others hold both cases."""
    found = list(ranges)
    for low, high in ranges:
        for code in range(low, (high if high - low < _LARGEST_FOLDED else min(high, 127)) + 1):
            character = chr(code)
            cases = (character.lower(), character.upper(), _MORE_CASES.get(character.lower(), ""))
            found += [(ord(other), ord(other)) for other in cases if len(other) == 1 and other != character]
    return union(found)


def contains(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


@lru_cache(maxsize=64)
def category(name: str) -> Ranges | None:
    """The characters of a general category of Unicode, such as L or Lu; None where there is none of that name."""
    if name == "Any":
        return ANY
    found = union((low, high) for low, high, each in _runs() if each.startswith(name)) if name else ()
    return found or None


@cache
def _runs() -> list[tuple[int, int, str]]:
    """All code points as runs of one category."""
    names = list(map(unicodedata.category, map(chr, range(LAST + 1))))
    starts = [0, *(code for code in range(1, LAST + 1) if names[code] != names[code - 1])]
    return [(low, high - 1, names[low]) for low, high in pairwise([*starts, LAST + 1])]
