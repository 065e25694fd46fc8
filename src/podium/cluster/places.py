"""Things that can be reached from some nodes only: disks of one node, storage pools of one zone.

Each thing says where it is by label requirements. Thousands of local disks each name another node, so asking them one
by one would cost disks × nodes. Things that ask for one value of one label are therefore filed under that value, and
the answer for all nodes is one table over the label's values. Everything else is filed by its whole condition, and
each distinct condition is matched once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.cluster.labels import Mask, NodeLabels
from podium.kube.affinity import NodeSelector
from podium.kube.selector import Requirement, compile_node_selector
from podium.kube.storage import VolumeNodeAffinity

T = TypeVar("T")

Where = tuple[tuple[Requirement, ...], ...]
"""Terms of which one must hold, each a list of requirements that must all hold."""

ANYWHERE: Where = ((),)
HOSTNAME = "kubernetes.io/hostname"

_Pin = tuple[str, tuple[Requirement, ...]]
"""A label key whose value decides, and what else is asked of the node."""


def where_selected(selector: NodeSelector) -> Where:
    """Where a node selector points by labels alone: conditions on node fields are not looked at."""
    return tuple(term.requirements for term in compile_node_selector(selector).terms if not term.errors)


def where_reachable(affinity: VolumeNodeAffinity | None) -> Where:
    """The nodes that a volume can be used from."""
    if affinity is None or affinity.required is None:
        return ANYWHERE
    return where_selected(affinity.required)


def matches(where: Where, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is one of the nodes meant."""
    return any(all(requirement.matches(labels) for requirement in term) for term in where)


def matching_rows(where: Where, labels: NodeLabels, rows: NDArray[np.intp] | None) -> Mask:
    """bool per row (of `rows`, or of all): the node is one of those meant."""
    answer: Mask | None = None
    for term in where:
        held = labels.match(term, rows)
        answer = held if answer is None else answer | held
    return np.zeros(labels.rows if rows is None else len(rows), dtype=np.bool_) if answer is None else answer


class Places(Generic[T]):
    """Named things, filed by where they can be reached."""

    def __init__(self) -> None:
        self._pinned: dict[_Pin, dict[str, dict[str, T]]] = {}
        self._others: dict[Where, dict[str, T]] = {}

    def __bool__(self) -> bool:
        return bool(self._pinned or self._others)

    def __iter__(self) -> Iterator[T]:
        for by_value in self._pinned.values():
            for held in by_value.values():
                yield from held.values()
        for held in self._others.values():
            yield from held.values()

    def add(self, name: str, where: Where, item: T) -> None:
        pin = _pin(where)
        if pin is None:
            self._others.setdefault(where, {})[name] = item
        else:
            key, value, rest = pin
            self._pinned.setdefault((key, rest), {}).setdefault(value, {})[name] = item

    def discard(self, name: str, where: Where) -> None:
        pin = _pin(where)
        if pin is None:
            _remove(self._others, where, name)
            return
        key, value, rest = pin
        by_value = self._pinned.get((key, rest))
        if by_value is not None:
            _remove(by_value, value, name)
            if not by_value:
                del self._pinned[key, rest]

    def at(self, labels: Mapping[str, str]) -> Iterator[T]:
        """The things that a node with these labels can reach."""
        for (key, rest), by_value in self._pinned.items():
            if all(requirement.matches(labels) for requirement in rest):
                yield from by_value.get(labels.get(key, ""), {}).values() if key in labels else ()
        for where, held in self._others.items():
            if matches(where, labels):
                yield from held.values()

    def count(
        self, labels: NodeLabels, rows: NDArray[np.intp] | None, wanted: Callable[[T], bool] | None = None
    ) -> NDArray[np.int64]:
        """How many of the (wanted) things each row can reach."""

        def number_of(held: Mapping[str, T] | None) -> int:
            if held is None:
                return 0
            return len(held) if wanted is None else sum(map(wanted, held.values()))

        total = np.zeros(labels.rows if rows is None else len(rows), dtype=np.int64)
        for (key, rest), by_value in self._pinned.items():
            column = labels.column(key)
            ids = column.ids if rows is None else column.ids[rows]
            if len(ids) < len(by_value):
                reached = np.array(
                    [number_of(by_value.get(column.values[i])) if i else 0 for i in ids.tolist()], dtype=np.int64
                )
            else:
                per_value = np.zeros(len(column.values), dtype=np.int64)
                for value, held in by_value.items():
                    number = column.id_of.get(value)
                    if number is not None:
                        per_value[number] = number_of(held)
                reached = per_value[ids]
            total += reached * labels.match(rest, rows) if rest else reached
        for where, held in self._others.items():
            number = number_of(held)
            if number:
                total += number * matching_rows(where, labels, rows)
        return total


def _pin(where: Where) -> tuple[str, str, tuple[Requirement, ...]] | None:
    """The label and the one value that a single term asks for, hostname before others, and the rest of the term."""
    if len(where) != 1:
        return None
    single = [each for each in where[0] if each.operator == "In" and len(each.values) == 1]
    if not single:
        return None
    chosen = next((each for each in single if each.key == HOSTNAME), single[0])
    return chosen.key, chosen.values[0], tuple(each for each in where[0] if each is not chosen)


K = TypeVar("K")


def _remove(filed: dict[K, dict[str, T]], key: K, name: str) -> None:
    held = filed.get(key)
    if held is not None:
        held.pop(name, None)
        if not held:
            del filed[key]
