"""Why no node would take a pod: per node, per plugin, and as the one sentence people read.

The sentence is kube-scheduler's, to the letter, because people search for it and tools parse it: a histogram of
reasons, sorted as text, then what preemption had to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Rows
from podium.framework.status import Code, PluginError, Status
from podium.framework.verdict import Verdict

PASSED = -1


class Refusals:
    """What a run of filters said about some rows: for each, the plugin that turned it away and its code.

    `plugin`: index into `verdicts`, or PASSED; `code`: that plugin's number for the reason.
    """

    __slots__ = ("code", "plugin", "rows", "verdicts")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.plugin = np.full(len(rows), PASSED, dtype=np.int16)
        self.code = np.zeros(len(rows), dtype=np.int64)
        self.verdicts: list[tuple[str, Verdict]] = []

    def add(self, plugin: str, verdict: Verdict, undecided: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Record a plugin's verdict where no earlier one decided; returns which rows are still undecided."""
        turned_away = undecided & (verdict.codes != 0)
        if np.count_nonzero(turned_away):  # several times as quick as any() on thousands of nodes
            np.copyto(self.plugin, len(self.verdicts), where=turned_away)
            np.copyto(self.code, verdict.codes, where=turned_away)
            self.verdicts.append((plugin, verdict))
            undecided = undecided & ~turned_away
        return undecided

    @property
    def passed(self) -> NDArray[np.bool_]:
        passed: NDArray[np.bool_] = self.plugin == PASSED
        return passed

    def status(self, position: int) -> Status | None:
        """The status of the row at a position; None when it passed."""
        number = int(self.plugin[position])
        return None if number == PASSED else self._status(number, int(self.code[position]))

    def kinds(self, keep: NDArray[np.bool_]) -> Iterator[tuple[Status, Rows]]:
        """Each distinct status among the kept rows that were turned away, with the rows that have it."""
        for number in range(len(self.verdicts)):
            refused = np.flatnonzero(keep & (self.plugin == number))
            codes = self.code[refused]
            for code in _distinct(codes):
                yield self._status(number, code), self.rows[refused[codes == code]]

    def _status(self, number: int, code: int) -> Status:
        name, verdict = self.verdicts[number]
        status = refusal_of(name, verdict, code)
        return status if status.plugin else status.by(name)


def refusal_of(plugin: str, verdict: Verdict, code: int) -> Status:
    """The status a filter's code stands for; anything but one that refuses the node, or fails, is a mistake."""
    what = f'running "{plugin}" filter plugin: status_of({code})'
    try:
        status: Any = verdict.status_of(code)
    except Exception as error:
        raise PluginError(f"{what}: {type(error).__name__}: {error}") from error
    if isinstance(status, Status) and (status.rejected or status.code == Code.ERROR):
        return status
    given = status.code.name if isinstance(status, Status) else type(status).__name__
    raise PluginError(f"{what} must give a Status that refuses the node, got {given}")


def _distinct(codes: NDArray[np.int64]) -> list[int]:
    """The different codes, ascending. They mostly lie close together, and then counting beats sorting."""
    if not len(codes):
        return []
    low, high = int(codes.min()), int(codes.max())
    if high - low < 4096:
        counted: list[int] = (np.flatnonzero(np.bincount(codes - low)) + low).tolist()
        return counted
    found: list[int] = np.unique(codes).tolist()
    return found


class NodeStatuses:
    """The status of every node after the filters. Nodes never looked at share the `absent` status.

    Thousands of nodes share a handful of statuses, so each row holds only the number of one (0: absent).
    """

    def __init__(self, rows: int, absent: Status | None = None) -> None:
        self.absent = absent or Status(Code.UNRESOLVABLE)
        self._number = np.zeros(rows, dtype=np.int32)
        self._statuses: list[Status] = []
        self._known: dict[Status, int] = {}
        self.elsewhere: dict[str, Status] = {}
        """What was said of nodes that are not known here, by name: an extender may."""

    def add_group(self, status: Status, rows: Rows) -> None:
        """Give many nodes one status, whatever they had."""
        self._number[rows] = self._number_of(status)

    def set(self, row: int, status: Status) -> None:
        self._number[row] = self._number_of(status)

    def set_named(self, statuses: Mapping[str, Status], row_of: Mapping[str, int]) -> None:
        """Give nodes statuses by name, whatever they had."""
        for name, status in statuses.items():
            row = row_of.get(name)
            if row is None:
                self.elsewhere[name] = status
            else:
                self.set(row, status)

    def _number_of(self, status: Status) -> int:
        number = self._known.get(status)
        if number is None:
            self._statuses.append(status)
            number = self._known[status] = len(self._statuses)
        return number

    def groups(self) -> Iterator[tuple[Status, Rows]]:
        """Every explicit status with the rows that have it."""
        for number, status in enumerate(self._statuses, start=1):
            yield status, np.flatnonzero(self._number == number)

    def counts(self) -> Iterator[tuple[Status, int]]:
        """Every explicit status with the number of nodes that have it."""
        counted = np.bincount(self._number, minlength=len(self._statuses) + 1).tolist()
        yield from zip(self._statuses, counted[1:], strict=True)
        for status in self.elsewhere.values():
            yield status, 1

    def __len__(self) -> int:
        return int(np.count_nonzero(self._number))

    def get(self, row: int) -> Status:
        number = int(self._number[row])
        return self._statuses[number - 1] if number else self.absent

    def with_code(self, code: Code, cluster: Cluster) -> Rows:
        """The present nodes whose status has this code, in visiting order."""
        has_code = np.array([self.absent.code == code, *(status.code == code for status in self._statuses)])
        order = cluster.order.rows
        chosen: Rows = order[has_code[self._number[order]]]
        return chosen


class Diagnosis:
    """All that is known about why a pod found no node."""

    def __init__(self, nodes: int, statuses: NodeStatuses) -> None:
        self.nodes = nodes
        self.statuses = statuses
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.pre_filter_message = ""
        self.post_filter_message = ""

    def blame(self, status: Status) -> None:
        """Note the plugin behind a rejection, so that its events wake the pod."""
        if not status.plugin:
            return
        self.unschedulable_plugins.add(status.plugin)
        if status.code == Code.PENDING:
            self.pending_plugins.add(status.plugin)

    @property
    def message(self) -> str:
        text = f"0/{self.nodes} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            counts = self._histogram()
            if counts:
                text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text

    def _histogram(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        explicit = 0
        for status, number in self.statuses.counts():
            explicit += number
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + number
        if explicit < self.nodes:
            for reason in self.statuses.absent.reasons:
                counts[reason] = counts.get(reason, 0) + self.nodes - explicit
        return {reason: count for reason, count in counts.items() if count}


class Nomination(NamedTuple):
    """What PostFilter wants of the pod's nominated node: a name, or "" to clear it."""

    node_name: str


class PostFilterResult(NamedTuple):
    """PostFilter's answer. Success means room is being made; `nomination` None leaves the pod's nomination alone."""

    status: Status | None
    nomination: Nomination | None = None
