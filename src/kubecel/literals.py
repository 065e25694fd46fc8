"""Reads the constants of an expression: numbers, strings and bytes with their escapes."""

from __future__ import annotations

from typing import Final

from kubecel.values import Uint

_SIMPLE: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, **{c: ord(c) for c in "\\'\"`?"}}
_HEX_DIGITS: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_BROKEN: Final = "unable to unescape string"
_MOST_INT: Final = 2**63


class LiteralError(Exception):
    """A constant that stands for no value."""


def read_int(text: str, sign: str) -> int:
    """The number; where a repair put a missing token, it is none, as in cel-go."""
    if not text[0].isdecimal():
        raise LiteralError("invalid int literal")
    value = int(text[2:], 16) if text.startswith("0x") else _decimal(text)
    value = -value if sign else value
    if not -_MOST_INT <= value < _MOST_INT:
        raise LiteralError("invalid int literal")
    return value


def read_uint(text: str) -> Uint:
    if not text[0].isdecimal():
        raise LiteralError("invalid uint literal")
    digits = text[:-1]
    value = int(digits[2:], 16) if digits.startswith("0x") else _decimal(digits)
    if value >= 2 * _MOST_INT:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def _decimal(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= 20 else 2 * _MOST_INT


def read_double(text: str, sign: str) -> float:
    value = float(sign + text) if text[0] in ".0123456789" else float("inf")
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


def read_string(text: str) -> str:
    return _unescaped(text, as_bytes=False).decode(errors="surrogatepass")


def read_bytes(text: str) -> bytes:
    return _unescaped(text[1:], as_bytes=True)


def _unescaped(text: str, *, as_bytes: bool) -> bytes:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[:1] in ("r", "R")
    text = text[raw:]
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "'\"":
        raise LiteralError(_BROKEN)
    quotes = 3 if len(text) >= 6 and text[:3] in ("'''", '"""') else 1
    text = text[quotes:-quotes]
    if raw or "\\" not in text:
        return text.encode(errors="surrogatepass")
    found = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "\\":
            found += text[at].encode(errors="surrogatepass")
            at += 1
            continue
        value, encode, at = _escape(text, at + 1, as_bytes=as_bytes)
        found += chr(value).encode() if encode or value >= 256 else bytes([value])
    return bytes(found)


def _escape(text: str, at: int, *, as_bytes: bool) -> tuple[int, bool, int]:
    """The code point, whether it is written in UTF-8, and where the text goes on."""
    if at >= len(text):
        raise LiteralError("unable to unescape string, found '\\' as last character")
    letter = text[at]
    at += 1
    if letter in _SIMPLE:
        return _SIMPLE[letter], False, at
    if letter in _HEX_DIGITS:
        count = _HEX_DIGITS[letter]
        if as_bytes and count > 2:
            raise LiteralError(_BROKEN)
        digits = text[at : at + count]
        if len(digits) < count or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            raise LiteralError(_BROKEN)
        value = int(digits, 16)
        if not as_bytes and (value > 0x10FFFF or 0xD800 <= value < 0xE000):
            raise LiteralError("invalid unicode code point")
        return value, not as_bytes, at + count
    if letter in "0123":
        digits = text[at : at + 2]
        if len(digits) < 2 or any(digit not in "01234567" for digit in digits):
            raise LiteralError("unable to unescape octal sequence in string")
        return int(letter + digits, 8), not as_bytes, at + 2
    raise LiteralError(_BROKEN)
