"""Splits the text of an expression into tokens: the longest that fits, at each place.

Where no token fits, the error shows the text up to the first character at which none was possible any more, that text
is left out, and splitting goes on after it.

Also reads the constants of an expression: numbers, strings and bytes with their escapes.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubecel.source import MISSING, SourceText
from kubecel.strconv import words
from kubecel.values import Uint

_NAMES: Final = words(
    "'==' '!=' 'in' '<' '<=' '>=' '>' '&&' '||' '[' ']' '{' '}' '(' ')' '.' ',' '-' '!' '?' ':' '+' '*' '/' '%' "
    "'true' 'false' 'null' WHITESPACE COMMENT NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER ESC_IDENTIFIER"
)
EOF: Final = 0
NAMES: Final = ("<EOF>", *_NAMES)
"""Kinds of tokens, as errors name them; the order is the one in which errors list them."""
KIND: Final = {name.strip("'"): number for number, name in enumerate(NAMES)}

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_HIDDEN: Final = re.compile(r"[\t \r\n\f]+|//[^\n]*")
_NUMBER: Final = re.compile(
    r"(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
)
_SYMBOL: Final = re.compile(r"==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%]")
_ESCAPED_NAME: Final = re.compile(r"`[A-Za-z0-9_.\-/ ]*")
_ESCAPE_PREFIXES: Final = re.compile(
    r"\\(?:[abfnrtv\"'\\?`]|[0-3](?:[0-7](?:[0-7])?)?|[xX][0-9a-fA-F]{0,2}|u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8})?"
)
_ESCAPE: Final = re.compile(
    r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
)
_SIMPLE: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, **{c: ord(c) for c in "\\'\"`?"}}
_HEX_DIGITS: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_BROKEN: Final = "unable to unescape string"
_MOST_INT: Final = 2**63


class Token(NamedTuple):
    """A word of the expression: its kind, its text and the offset at which it begins."""

    kind: int
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def split(source: SourceText) -> list[Token]:
    """The tokens, with an EOF at the end; what fits none is reported to the source."""
    text, at, tokens = source.text, 0, []
    while at < len(text):
        hidden = _HIDDEN.match(text, at)
        if hidden:
            at = hidden.end()
            continue
        kind, end = _longest(text, at)
        if kind is None:
            source.report(at, f"Syntax error: token recognition error at: '{text[at : end + 1]}'")
            source.unread.append((at, end + 1))
            at = end + 1
            continue
        tokens.append(Token(kind, text[at:end], at))
        at = end
    tokens.append(Token(EOF, "", len(text) or MISSING))
    return tokens


def _longest(text: str, at: int) -> tuple[int | None, int]:
    """The kind and the end of the longest token, or no kind and the place at which none was possible any more."""
    first = text[at]
    number = _NUMBER.match(text, at) if first in ".0123456789" else None
    if number:
        return KIND[number.lastgroup or ""], number.end()
    literal = _literal(text, at)
    if isinstance(literal, tuple):
        return literal
    word = _WORD.match(text, at)
    if word:
        return KIND.get(word[0] if word[0] in ("in", "true", "false", "null") else "IDENTIFIER"), word.end()
    if literal is not None:
        return None, literal
    symbol = _SYMBOL.match(text, at)
    if symbol:
        return KIND[symbol[0]], symbol.end()
    if first == "`":
        name = _ESCAPED_NAME.match(text, at)
        end = name.end() if name else at
        return (KIND["ESC_IDENTIFIER"], end + 1) if text[end : end + 1] == "`" and end > at + 1 else (None, end)
    return None, at + 1 if first in "&|=" else at


def _literal(text: str, at: int) -> tuple[int, int] | int | None:
    """The kind and end of a string or bytes literal; where it breaks off; None where none begins."""
    begin, kind = (at + 1, KIND["BYTES"]) if text[at] in "bB" else (at, KIND["STRING"])
    raw = text[begin : begin + 1] in ("r", "R")
    begin += raw
    quote = text[begin : begin + 1]
    if quote not in ('"', "'") or not quote:
        return None
    end, broken = _scan(text, begin + 1, quote, raw=raw, lines=False)
    if text.startswith(quote * 3, begin):
        long_end, long_broken = _scan(text, begin + 3, quote * 3, raw=raw, lines=True)
        end, broken = max(end, long_end), max(broken, long_broken)
    if end >= 0:
        return kind, end
    return broken


def _scan(text: str, at: int, close: str, *, raw: bool, lines: bool) -> tuple[int, int]:
    """The end of the literal, or -1 and where it breaks off."""
    while at < len(text):
        if text.startswith(close, at):
            return at + len(close), at
        character = text[at]
        if character in "\n\r" and not lines:
            return -1, at
        if character == "\\" and not raw:
            escape = _ESCAPE.match(text, at)
            if escape is None:
                prefix = _ESCAPE_PREFIXES.match(text, at)
                return -1, prefix.end() if prefix else at
            at = escape.end()
            continue
        at += 1
    return -1, at


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
