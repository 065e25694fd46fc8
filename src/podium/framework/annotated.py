"""Numbers written as text in annotations, read strictly: what is not plainly a number is None, never a guess.

Go's rules hold, because annotators and their readers grew up with them: ASCII digits, an optional sign, no blanks, no
underscores, no hexadecimal. Decimals may have an exponent; `nan` and `inf` are read as such, so that the reader can
tell a measurement that went wrong from none.
"""

from __future__ import annotations

import math
import re

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")


def read_decimal(text: str | None) -> float | None:
    """A decimal number; None where there is none, or where it is as large as infinity.

    >>> read_decimal("1.5e3"), read_decimal(" 7"), read_decimal("N/A"), read_decimal("NaN"), read_decimal("1e999")
    (1500.0, None, None, nan, None)
    """
    if text is None:
        return None
    if _DECIMAL.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else None
    return float(text) if _WORD.fullmatch(text) else None


def read_whole(text: str | None) -> int | None:
    """A whole number of any size.

    >>> read_whole("+7"), read_whole("07"), read_whole("-3"), read_whole("5.5"), read_whole(" 7"), read_whole(None)
    (7, 7, -3, None, None, None)
    """
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None
