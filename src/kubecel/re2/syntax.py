"""Parses Go's regular expressions (RE2 syntax) into a tree, and words what is wrong as Go's `regexp` does.

Of groups only the extent matters here, because only whether and where a text matches is asked. Scripts of Unicode
(`\\p{Greek}`) are not known; general categories (`\\pL`, `\\p{Nd}`) are.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubecel.re2 import characters
from kubecel.re2.characters import Ranges

MAX_REPEAT: Final = 1000
MAX_DEPTH: Final = 100
_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ASSERTIONS: Final = {"A": "begin text", "z": "end text", "b": "word boundary", "B": "no word boundary"}
_COUNT: Final = re.compile(r"\{(\d{1,9})(?:(,)(\d{0,9}))?\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<([A-Za-z0-9_]+)>|([imsU]*(?:-[imsU]+)?)([:)]))")
_HEX: Final = "0123456789abcdefABCDEF"
_LINE_END: Final = ((10, 10),)


class PatternError(ValueError):
    """A pattern that is none; its text is what Go's `regexp` says after "error parsing regexp: "."""


class Characters(NamedTuple):
    """One character of a set."""

    ranges: Ranges


class Assertion(NamedTuple):
    """A position between two characters, such as "begin text"."""

    name: str


class Concatenation(NamedTuple):
    parts: tuple[Node, ...]


class Alternation(NamedTuple):
    parts: tuple[Node, ...]


class Repeat(NamedTuple):
    """`most` is None for any number; a lazy one tries few before many, which matters to where a match ends."""

    part: Node
    least: int
    most: int | None
    lazy: bool = False


Node = Characters | Assertion | Concatenation | Alternation | Repeat


class _Flags(NamedTuple):
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    lazy: bool = False


def parse(pattern: str) -> Node:
    """The tree of a pattern; PatternError where it is none."""
    return _Parser(pattern).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node, _ = self._choice(_Flags())
        if self._at < len(self._text):
            raise PatternError(f"unexpected ): `{self._text}`")
        return node

    def _choice(self, flags: _Flags) -> tuple[Node, _Flags]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternError(f"expression nests too deeply: `{self._text}`")
        branches: list[Node] = []
        while True:
            branch, flags = self._sequence(flags)
            branches.append(branch)
            if not self._text.startswith("|", self._at):
                break
            self._at += 1
        self._depth -= 1
        return (branches[0] if len(branches) == 1 else Alternation(tuple(branches))), flags

    def _sequence(self, flags: _Flags) -> tuple[Node, _Flags]:
        parts: list[Node] = []
        text = self._text
        repeated_from = -1  # where a repetition began that the last part ends with
        while self._at < len(text) and text[self._at] not in "|)":
            start, character = self._at, text[self._at]
            count = _COUNT.match(text, start) if character == "{" else None
            if character in "*+?" or count is not None:
                self._at = count.end() if count is not None else start + 1
                least, most = _bounds(character, count)
                if count is not None and (max(least, most or 0) > MAX_REPEAT or (most is not None and most < least)):
                    raise PatternError(f"invalid repeat count: `{count[0]}`")
                lazy = flags.lazy
                if text.startswith("?", self._at):
                    self._at += 1
                    lazy = not lazy
                if repeated_from >= 0:
                    raise PatternError(f"invalid nested repetition operator: `{text[repeated_from : self._at]}`")
                if not parts:
                    raise PatternError(f"missing argument to repetition operator: `{text[start : self._at]}`")
                parts[-1] = Repeat(parts[-1], least, most, lazy)
                if count is not None and not _repeats_are_few(parts[-1], MAX_REPEAT):
                    raise PatternError(f"invalid repeat count: `{count[0]}`")
                repeated_from = start
                continue
            repeated_from = -1
            if character == "(":
                node, flags = self._group(flags)
                if node is not None:
                    parts.append(node)
            elif text.startswith(r"\Q", start):
                end = text.find(r"\E", start)
                quoted = text[start + 2 : end if end >= 0 else len(text)]
                self._at = end + 2 if end >= 0 else len(text)
                parts += [_one(ord(each), flags) for each in quoted]
            else:
                parts.append(self._single(flags))
        return (parts[0] if len(parts) == 1 else Concatenation(tuple(parts))), flags

    def _group(self, flags: _Flags) -> tuple[Node | None, _Flags]:
        text, start, inner = self._text, self._at, flags
        if text.startswith("(?", start):
            found = _GROUP.match(text, start)
            if found is None:
                raise PatternError(_group_problem(text[start:]))
            self._at = found.end()
            if found[1] is None:
                inner = _changed(flags, found[2])
                if found[3] == ")":
                    return None, inner
        else:
            self._at += 1
        node, _ = self._choice(inner)
        if not text.startswith(")", self._at):
            raise PatternError(f"missing closing ): `{text}`")
        self._at += 1
        return node, flags

    def _single(self, flags: _Flags) -> Node:
        character = self._text[self._at]
        if character == "[":
            return Characters(self._bracket(flags))
        if character == "\\":
            return self._escaped(flags)
        self._at += 1
        if character == ".":
            return Characters(characters.ANY if flags.dot_all else characters.inverse(_LINE_END))
        if character == "^":
            return Assertion("begin line" if flags.lines else "begin text")
        if character == "$":
            return Assertion("end line" if flags.lines else "end text")
        return _one(ord(character), flags)

    def _escaped(self, flags: _Flags) -> Node:
        following = self._text[self._at + 1 : self._at + 2]
        if following in _ASSERTIONS and following:
            self._at += 2
            return Assertion(_ASSERTIONS[following])
        ranges = self._class_escape()
        if ranges is not None:
            return Characters(characters.folded(ranges) if flags.fold else ranges)
        return _one(self._character(), flags)

    def _class_escape(self) -> Ranges | None:
        """`\\d`, `\\pL` and the like at this place; None where there is none."""
        text, start = self._text, self._at
        name = text[start + 1 : start + 2]
        if name and name.lower() in characters.PERL:
            self._at += 2
            ranges = characters.PERL[name.lower()]
            return characters.inverse(ranges) if name.isupper() else ranges
        if name not in ("p", "P") or not name:
            return None
        if text.startswith("{", start + 2):
            end = text.find("}", start)
            if end < 0:
                raise PatternError(f"invalid character class range: `{text[start:]}`")
            wanted, self._at = text[start + 3 : end], end + 1
        else:
            wanted, self._at = text[start + 2 : start + 3], start + 3
        found = characters.category(wanted.lstrip("^"))
        if found is None:
            raise PatternError(f"invalid character class range: `{text[start : self._at]}`")
        return characters.inverse(found) if (name == "P") != wanted.startswith("^") else found

    def _character(self) -> int:
        """One character, which may be escaped."""
        text, start = self._text, self._at
        if text[start] != "\\":
            self._at += 1
            return ord(text[start])
        if start + 1 >= len(text):
            raise PatternError("trailing backslash at end of expression: ``")
        following = text[start + 1]
        if following in _ESCAPES:
            self._at += 2
            return _ESCAPES[following]
        if following == "x":
            return self._hexadecimal()
        if found := re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})").match(text, start):
            self._at = found.end()
            return int(found[1], 8)
        if following.isascii() and not following.isalnum():
            self._at += 2
            return ord(following)
        raise PatternError(f"invalid escape sequence: `{text[start : start + 2]}`")

    def _hexadecimal(self) -> int:
        """`\\x7F` or `\\x{10FFFF}`."""
        text, start = self._text, self._at
        braced = text.startswith("{", start + 2)
        self._at += 2 + braced
        digits = ""
        while self._at < len(text) and (braced or len(digits) < 2):
            self._at += 1
            character = text[self._at - 1]
            if braced and character == "}" and digits:
                return int(digits, 16)
            digits += character
            if character not in _HEX or int(digits, 16) > characters.LAST:
                break
        else:
            if not braced and len(digits) == 2:
                return int(digits, 16)
        raise PatternError(f"invalid escape sequence: `{text[start : self._at]}`")

    def _bracket(self, flags: _Flags) -> Ranges:
        text, start = self._text, self._at
        self._at += 1
        negated = text.startswith("^", self._at)
        self._at += negated
        found: list[tuple[int, int]] = []
        first = True
        while first or not text.startswith("]", self._at):
            if self._at >= len(text):
                raise PatternError(f"missing closing ]: `{text[start:]}`")
            first = False
            if text.startswith("[:", self._at) and (end := text.find(":]", self._at)) >= 0:
                found += self._posix(end)
                continue
            if text[self._at] == "\\" and (ranges := self._class_escape()) is not None:
                found += ranges
                continue
            found.append(self._range())
        self._at += 1
        ranges = characters.union(found)
        if flags.fold:
            ranges = characters.folded(ranges)
        return characters.inverse(ranges) if negated else ranges

    def _posix(self, end: int) -> Ranges:
        whole = self._text[self._at : end + 2]
        name = whole[2:-2]
        ranges = characters.POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise PatternError(f"invalid character class range: `{whole}`")
        self._at = end + 2
        return characters.inverse(ranges) if name.startswith("^") else ranges

    def _range(self) -> tuple[int, int]:
        start = self._at
        low = high = self._character()
        text = self._text
        if text.startswith("-", self._at) and self._at + 1 < len(text) and text[self._at + 1] != "]":
            self._at += 1
            high = self._character()
        if high < low:
            raise PatternError(f"invalid character class range: `{text[start : self._at]}`")
        return low, high


def _group_problem(text: str) -> str:
    if text.startswith(("(?P<", "(?<")):
        name, end, _ = text.partition(">")
        return f"invalid named capture: `{name}{end}`"
    flags = re.match(r"\(\?[imsU-]*", text)
    assert flags is not None
    if flags.end() == len(text):
        return f"missing closing ): `{text}`"
    return f"invalid or unsupported Perl syntax: `{text[: flags.end() + 1]}`"


def _one(code: int, flags: _Flags) -> Characters:
    ranges: Ranges = ((code, code),)
    return Characters(characters.folded(ranges) if flags.fold else ranges)


def _bounds(operator: str, count: re.Match[str] | None) -> tuple[int, int | None]:
    if count is None:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[operator]
    least = int(count[1])
    if count[2] is None:
        return least, least
    return least, int(count[3]) if count[3] else None


def _changed(flags: _Flags, letters: str) -> _Flags:
    names = {"i": "fold", "m": "lines", "s": "dot_all", "U": "lazy"}
    on, _, off = letters.partition("-")
    changes = {names[each]: True for each in on if each in names} | {
        names[each]: False for each in off if each in names
    }
    return flags._replace(**changes)


def _repeats_are_few(node: Node, allowed: int) -> bool:
    """Whether counted repetitions inside each other stand for no more than `allowed` copies."""
    if isinstance(node, Repeat):
        copies = node.least if node.most is None else node.most
        if copies > allowed:
            return False
        return _repeats_are_few(node.part, allowed // copies if copies else allowed)
    if isinstance(node, Concatenation | Alternation):
        return all(_repeats_are_few(part, allowed) for part in node.parts)
    return True
