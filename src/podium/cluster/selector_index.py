"""Finds the selectors that may match given labels without trying them all.

A selector that requires `key In (a, b)` can only match label sets that contain key=a or key=b. Such pairs
are required pairs. Filing selectors under them (and label sets under their pairs) makes both directions a lookup:
thousands of different selectors cost a new pod no more than the few that share a pair with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from podium.kube.selector import Selector

T = TypeVar("T")
Pair = tuple[str, str]


def required_pairs(selector: Selector) -> tuple[Pair, ...] | None:
    """Pairs of which a matching label set must hold one; None where the selector requires no certain pair."""
    for requirement in selector.requirements:
        if requirement.operator == "In":
            return tuple((requirement.key, value) for value in requirement.values)
    return None


class SelectorIndex(Generic[T]):
    """Things filed under the required pairs of their selector."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair, dict[T, None]] = {}
        self._without_pair: dict[T, None] = {}

    def add(self, thing: T, selector: Selector) -> None:
        pairs = required_pairs(selector)
        if pairs is None:
            self._without_pair[thing] = None
        else:
            for pair in pairs:
                self._by_pair.setdefault(pair, {})[thing] = None

    def discard(self, thing: T, selector: Selector) -> None:
        for pair in required_pairs(selector) or ():
            filed = self._by_pair.get(pair)
            if filed is not None:
                filed.pop(thing, None)
                if not filed:
                    del self._by_pair[pair]
        self._without_pair.pop(thing, None)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Everything whose selector may match `labels`, each once."""
        yield from self._without_pair
        seen: set[T] = set()
        for pair in labels.items():
            for thing in self._by_pair.get(pair, ()):
                if thing not in seen:
                    seen.add(thing)
                    yield thing
