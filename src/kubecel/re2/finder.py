"""Finds where a pattern matches: the leftmost match, and of several there the one that Go's `regexp` prefers.

All ways through the pattern are followed at once, in the order of preference, each with the place at which it began. A
way that matches ends all that come after it in that order. The work is bounded: beyond it CostError.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from kubecel.limits import look_at_the_time
from kubecel.re2 import characters
from kubecel.re2.characters import Ranges
from kubecel.re2.matcher import MAX_INSTRUCTIONS, MAX_WORK, CostError
from kubecel.re2.syntax import Alternation, Assertion, Characters, Concatenation, Node, PatternError, Repeat, parse

_LINE_END: Final = "\n"
_LOOK_EVERY: Final = 1000
"""After so many characters it is looked at whether the time is over."""


class _Instruction(NamedTuple):
    """Goes on at `first`, preferred, and `second`; over a character of a set, or where an assertion holds."""

    first: int
    second: int = -1
    ranges: Ranges = ()
    assertion: str = ""


_MATCH: Final = 0


class Finder:
    """A compiled pattern; PatternError where it is none."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._program: list[_Instruction] = [_Instruction(0)]
        self._start = self._emit(parse(pattern), _MATCH)

    def find(self, text: str, begin: int = 0) -> tuple[int, int] | None:
        """Where the first match from an offset on begins and ends."""
        found: tuple[int, int] | None = None
        ways: list[tuple[int, int]] = []
        work = 0
        for at in range(begin, len(text) + 1):
            if at % _LOOK_EVERY == 0:
                look_at_the_time()
            if found is None:
                ways.append((self._start, at))
            if not ways:
                break
            reached = self._closure(ways, text, at)
            work += len(reached) + 1
            if work > MAX_WORK:
                raise CostError(f"the pattern {self.pattern[:100]!r} takes too long to match {len(text)} characters")
            ways = []
            code = ord(text[at]) if at < len(text) else -1
            for number, start in reached:
                if number == _MATCH:
                    found = (start, at)
                    break
                instruction = self._program[number]
                if code >= 0 and characters.contains(instruction.ranges, code):
                    ways.append((instruction.first, start))
        return found

    def find_all(self, text: str, most: int = -1) -> list[str]:
        """The texts of all matches that do not overlap, at most so many; no empty one right after another match."""
        found: list[str] = []
        at, last = 0, -1
        while at <= len(text) and (most < 0 or len(found) < most):
            match = self.find(text, at)
            if match is None:
                break
            accepted = True
            if match[1] == at:
                accepted = match[0] != last
                at += 1
            else:
                at = match[1]
            last = match[1]
            if accepted:
                found.append(text[match[0] : match[1]])
        return found

    def _closure(self, ways: list[tuple[int, int]], text: str, at: int) -> list[tuple[int, int]]:
        """The instructions that take a character or match, reached in order of preference, each once."""
        reached: list[tuple[int, int]] = []
        seen: set[int] = set()
        left = ways[::-1]
        while left:
            number, start = left.pop()
            if number in seen:
                continue
            seen.add(number)
            instruction = self._program[number]
            if number == _MATCH or instruction.ranges:
                reached.append((number, start))
            elif instruction.assertion:
                if _holds(instruction.assertion, text, at):
                    left.append((instruction.first, start))
            else:
                if instruction.second >= 0:
                    left.append((instruction.second, start))
                left.append((instruction.first, start))
        return reached

    def _emit(self, node: Node, after: int) -> int:
        """Write instructions for the node that go on at `after`; the first of them."""
        match node:
            case Characters():
                return self._add(_Instruction(after, ranges=node.ranges or ((-2, -2),)))
            case Assertion():
                return self._add(_Instruction(after, assertion=node.name))
            case Concatenation():
                for part in reversed(node.parts):
                    after = self._emit(part, after)
                return after
            case Alternation():
                entry = self._emit(node.parts[-1], after)
                for part in reversed(node.parts[:-1]):
                    entry = self._add(_Instruction(self._emit(part, after), entry))
                return entry
            case Repeat():
                return self._emit_repeat(node, after)

    def _emit_repeat(self, node: Repeat, after: int) -> int:
        if node.most is None:
            entry = self._add(_Instruction(0))
            start = self._emit(node.part, entry)
            self._program[entry] = _choice(start, after, lazy=node.lazy)
        else:
            entry = after
            for _ in range(node.most - node.least):
                entry = self._add(_choice(self._emit(node.part, entry), after, lazy=node.lazy))
        for _ in range(node.least):
            entry = self._emit(node.part, entry)
        return entry

    def _add(self, instruction: _Instruction) -> int:
        if len(self._program) >= MAX_INSTRUCTIONS:
            raise PatternError(f"expression too large: `{self.pattern[:100]}`")
        self._program.append(instruction)
        return len(self._program) - 1


def _choice(again: int, after: int, *, lazy: bool) -> _Instruction:
    return _Instruction(after, again) if lazy else _Instruction(again, after)


def _holds(name: str, text: str, at: int) -> bool:
    match name:
        case "begin text":
            return at == 0
        case "end text":
            return at == len(text)
        case "begin line":
            return at == 0 or text[at - 1] == _LINE_END
        case "end line":
            return at == len(text) or text[at] == _LINE_END
    before = at > 0 and characters.contains(characters.WORD, ord(text[at - 1]))
    behind = at < len(text) and characters.contains(characters.WORD, ord(text[at]))
    return (before != behind) == (name == "word boundary")


@lru_cache(maxsize=200)
def compile_finder(pattern: str) -> Finder:
    """The compiled pattern, shared by all callers.

    >>> compile_finder("a+|b").find_all("aab")
    ['aa', 'b']
    """
    return Finder(pattern)
