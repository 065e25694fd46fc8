"""Splits the text of an expression into tokens: the longest that fits, at each place.

Where no token fits, the error shows the text up to the first character at which none was possible any more, that text
is left out, and splitting goes on after it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubecel.source import MISSING, SourceText
from kubecel.words import words

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
