"""Matches texts against regular expressions in time linear in the text.

A pattern becomes a program of few instructions (Thompson's construction). All ways through it are followed at once, so
a state of the search is a set of instructions, and what follows a state and a character is computed once and
remembered: a deterministic automaton that is built while it is used. Characters that no set of the pattern separates
share a class. What is remembered is bounded, and so is the work of one search: beyond it CostError.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from threading import Lock
from typing import Final, NamedTuple

from kubecel.limits import look_at_the_time
from kubecel.re2 import characters
from kubecel.re2.characters import Ranges
from kubecel.re2.syntax import Alternation, Assertion, Characters, Concatenation, Node, PatternError, parse

MAX_INSTRUCTIONS: Final = 10_000
MAX_STATES: Final = 1_000
MAX_CLASSES: Final = 100
MAX_WORK: Final = 2_000_000
"""Instructions looked at in one search beyond what is remembered: a second or two."""
_LOOK_EVERY: Final = 10_000
"""After so much work it is looked at whether the time is over."""
_LINE_END: Final = 10
_END: Final = -1


class CostError(Exception):
    """A search that would take too long."""


class _Take(NamedTuple):
    """Goes on after one character of a set."""

    ranges: Ranges
    after: int


class _Fork(NamedTuple):
    """Goes on at two places."""

    first: int
    second: int


class _Check(NamedTuple):
    """Goes on where an assertion holds."""

    name: str
    after: int


class _State(NamedTuple):
    """Instructions to go on at, and what is known of the character before."""

    instructions: frozenset[int]
    begins: bool
    after_line_end: bool
    after_word: bool


_Instruction = _Take | _Fork | _Check
_MATCH: Final = 0


class Pattern:
    """A compiled pattern; PatternError where it is none."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._program: list[_Instruction | None] = [None]
        self._start = self._emit(parse(pattern), _MATCH)
        self._boundaries = self._class_boundaries()
        self._first = _State(frozenset({self._start}), True, False, False)
        self._taking_of: dict[int, dict[int, int]] = {}
        self._free = Lock()
        """Held while a thread searches: what is found out on the way is remembered."""
        self._forget()

    def search(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text; CostError where that takes too long to find out."""
        if not self._free.acquire(blocking=False):  # another thread searches with it
            return Pattern(self.pattern).search(text)
        try:
            return self._search(text)
        finally:
            self._free.release()

    def _search(self, text: str) -> bool:
        work = looked_at = 0
        number, following = 0, self._following
        class_of = self._class_of
        for character in text:
            kind = class_of.get(character)
            if kind is None:
                kind = self._find_class(character)
            found = following[number].get(kind)
            if found is None:
                found, cost = self._step(number, kind)
                following = self._following
                work += cost
                if work - looked_at > _LOOK_EVERY:
                    looked_at = work
                    look_at_the_time()
                if work > MAX_WORK:
                    raise CostError(
                        f"the pattern {self.pattern[:100]!r} takes too long to match {len(text)} characters"
                    )
            if found < 0:
                return True
            number = found
        found = following[number].get(_END)
        return (self._step(number, _END)[0] if found is None else found) < 0

    def _emit(self, node: Node, after: int) -> int:
        """Write instructions for the node that go on at `after`; the first of them."""
        if isinstance(node, Characters):
            return self._add(_Take(node.ranges, after))
        if isinstance(node, Assertion):
            return self._add(_Check(node.name, after))
        if isinstance(node, Concatenation):
            for part in reversed(node.parts):
                after = self._emit(part, after)
            return after
        if isinstance(node, Alternation):
            starts = [self._emit(part, after) for part in node.parts]
            while len(starts) > 1:
                second = starts.pop()
                starts[-1] = self._add(_Fork(starts[-1], second))
            return starts[0]
        if node.most is None:
            fork = self._add(_Fork(0, after))
            start = self._emit(node.part, fork)
            self._program[fork] = _Fork(start, after)
            entry = fork
        else:
            entry = after
            for _ in range(node.most - node.least):
                entry = self._add(_Fork(self._emit(node.part, entry), after))
        for _ in range(node.least):
            entry = self._emit(node.part, entry)
        return entry

    def _add(self, instruction: _Instruction) -> int:
        if len(self._program) >= MAX_INSTRUCTIONS:
            raise PatternError(f"expression too large: `{self.pattern[:100]}`")
        self._program.append(instruction)
        return len(self._program) - 1

    def _class_boundaries(self) -> list[int]:
        """The code points at which a class of characters begins, in order."""
        sets = [each.ranges for each in self._program if isinstance(each, _Take)]
        found = {0}
        for ranges in {*sets, characters.WORD, ((_LINE_END, _LINE_END),)}:
            for low, high in ranges:
                found |= {low, high + 1}
        return sorted(found)

    def _find_class(self, character: str) -> int:
        found = bisect_right(self._boundaries, ord(character)) - 1
        if len(self._class_of) >= MAX_STATES:
            self._class_of.clear()
        self._class_of[character] = found
        return found

    def _forget(self) -> None:
        """Begin with the first state alone."""
        self._class_of: dict[str, int] = {}
        self._states: list[_State] = [self._first]
        self._numbers: dict[_State, int] = {self._first: 0}
        self._following: list[dict[int, int]] = [{}]

    def _step(self, number: int, kind: int) -> tuple[int, int]:
        """The number of the state that follows, or -1 where the pattern has matched; and what it took to find out."""
        state = self._states[number]
        code = _END if kind == _END else self._boundaries[kind]
        reached = self._reached(state, code)
        if _MATCH in reached:
            self._following[number][kind] = -1
            return -1, len(reached)
        if kind == _END:
            self._following[number][kind] = 0
            return 0, len(reached)
        taking = self._taking(kind)
        after = {taking[at] for at in reached if at in taking}
        following = _State(
            frozenset({*after, self._start}), False, code == _LINE_END, characters.contains(characters.WORD, code)
        )
        found = self._numbers.get(following)
        if found is None:
            if len(self._states) >= MAX_STATES:
                self._forget()
                found = self._number(following)
                return found, len(reached)
            found = self._number(following)
        self._following[number][kind] = found
        return found, len(reached)

    def _taking(self, kind: int) -> dict[int, int]:
        """The instructions that take characters of a class, with where each goes on."""
        found = self._taking_of.get(kind)
        if found is None:
            code = self._boundaries[kind]
            takes = ((at, each) for at, each in enumerate(self._program) if isinstance(each, _Take))
            found = {at: take.after for at, take in takes if characters.contains(take.ranges, code)}
            if len(self._taking_of) >= MAX_CLASSES:
                self._taking_of.clear()
            self._taking_of[kind] = found
        return found

    def _number(self, state: _State) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
            self._following.append({})
        return self._numbers[state]

    def _reached(self, state: _State, code: int) -> set[int]:
        """Instructions reached without taking a character, where `code` is next; _END at the end of the text."""
        reached: set[int] = set()
        left = list(state.instructions)
        while left:
            at = left.pop()
            if at in reached:
                continue
            reached.add(at)
            instruction = self._program[at]
            if isinstance(instruction, _Fork):
                left += instruction
            elif isinstance(instruction, _Check) and _holds(instruction.name, state, code):
                left.append(instruction.after)
        return reached


def _holds(name: str, state: _State, code: int) -> bool:
    match name:
        case "begin text":
            return state.begins
        case "end text":
            return code == _END
        case "begin line":
            return state.begins or state.after_line_end
        case "end line":
            return code in (_END, _LINE_END)
    at_boundary = state.after_word != (code != _END and characters.contains(characters.WORD, code))
    return at_boundary == (name == "word boundary")


@lru_cache(maxsize=500)
def compile_pattern(pattern: str) -> Pattern:
    """The compiled pattern, shared by all callers.

    >>> compile_pattern("^(a+)+$").search("a" * 50 + "!")
    False
    """
    return Pattern(pattern)
