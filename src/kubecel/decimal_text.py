"""Reads whole numbers written as text, of any length, into 64 bits.

Python's `int` refuses text of more than 4,300 digits with a ValueError and takes digits of every script; text from
outside needs neither.
"""

from __future__ import annotations

import re
from typing import Final

MOST: Final = 2**63 - 1
_WHOLE = re.compile(r"([+-]?)0*([0-9]*)", re.ASCII)
_DIGITS: Final = 19
"""Digits of the largest number."""


def parse_int64(text: str) -> int | None:
    """The number; None for what is none. What does not fit becomes the largest number, or its negative.

    >>> parse_int64("-042"), parse_int64("9" * 5000) == MOST, parse_int64("²"), parse_int64("")
    (-42, True, None, None)
    """
    match = _WHOLE.fullmatch(text)
    if match is None or not text[-1:].isdigit():
        return None
    sign, digits = match.groups()
    number = MOST if len(digits) > _DIGITS else min(int(digits or "0"), MOST)
    return -number if sign == "-" else number
