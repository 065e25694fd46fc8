"""Writes and reads texts as Go's strconv does: quoted texts, numbers with a fraction, whole numbers.

Messages of Kubernetes quote with %q and print with %g, and PromQL reads Go's strings. Whole numbers come as text of any
length: Python's `int` refuses more than 4,300 digits with a ValueError and takes digits of every script; text from
outside needs neither.
"""

from __future__ import annotations

import math
import re
from typing import Final

_SHORT: Final = {7: "a", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t", 11: "v", 92: "\\", 34: '"'}
MOST: Final = 2**63 - 1
_WHOLE = re.compile(r"([+-]?)0*([0-9]*)", re.ASCII)
_DIGITS: Final = 19
"""Digits of the largest number."""


def quoted(text: str) -> str:
    r"""The text in double quotes, with escapes for what cannot be printed.

    >>> print(quoted('a"b\n'))
    "a\"b\n"
    """
    if text.isprintable() and '"' not in text and "\\" not in text:  # nearly always
        return f'"{text}"'
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    code = ord(character)
    if code in _SHORT:
        return "\\" + _SHORT[code]
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_float(value: float) -> str:
    """A number as Go prints it with %g: the shortest digits, with an exponent below 1e-4 and from 1e21 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    exponent = math.floor(math.log10(abs(value)))
    mantissa, _, shown = f"{value:e}".partition("e")
    digits = repr(value)
    if "e" in digits:
        mantissa, _, shown = digits.partition("e")
        exponent = int(shown)
    if -4 <= exponent < 21:
        return plain_float(value)
    mantissa = mantissa if "e" in digits else _scaled(digits, exponent)
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _scaled(digits: str, exponent: int) -> str:
    significant = digits.lstrip("-").replace(".", "").strip("0")
    mantissa = significant[0] + ("." + significant[1:] if len(significant) > 1 else "")
    return ("-" if digits.startswith("-") else "") + mantissa


def plain_float(value: float) -> str:
    """A number in full, without an exponent and without digits that say nothing."""
    text = repr(value)
    if "e" in text:
        mantissa, _, shown = text.partition("e")
        exponent = int(shown)
        digits = mantissa.lstrip("-").replace(".", "")
        point = len(mantissa.lstrip("-").partition(".")[0]) + exponent
        if point <= 0:
            text = "0." + "0" * -point + digits
        else:
            text = digits.ljust(point, "0")[:point] + ("." + digits[point:] if len(digits) > point else "")
        text = ("-" if mantissa.startswith("-") else "") + text
    return text.removesuffix(".0")


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


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in order."""
    return tuple(text.split())
