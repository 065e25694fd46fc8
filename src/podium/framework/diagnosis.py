"""Says why no node would take a pod: per node, per plugin, and as the one sentence people read.

The sentence is kube-scheduler's, to the letter, because people search for it and tools parse it: a histogram of
reasons, sorted as text, then what preemption had to say.

Also defines a filter's answer about many nodes at once: a number per node, and what each number means.

0 lets the node pass. Any other number stands for a status; statuses are looked up only when the reason is asked
for, so that rejecting five thousand nodes costs one array and no strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Mask, Rows
from podium.framework.status import Code, Status, WrongAnswerError, code_of

Codes = NDArray[np.int64]


class Verdict:
    """`codes`: int64[nodes], 0 = passes; `status_of(code)` explains the others.

    `fails` says that some of the statuses are errors: such a node is not refused, it fails the pod's cycle.
    """

    __slots__ = ("codes", "fails", "status_of")

    def __init__(self, codes: Codes, status_of: Callable[[int], Status], *, fails: bool = False) -> None:
        self.codes = codes
        self.status_of = status_of
        self.fails = fails

    @staticmethod
    def reject(where: Mask, status: Status) -> Verdict:
        """Reject some nodes, all for one reason."""
        return Verdict(where.astype(np.int64), lambda _code: status)

    @staticmethod
    def first_of(*rejections: tuple[Mask, Status]) -> Verdict:
        """Reject nodes for the first of several reasons that applies."""
        codes = np.zeros(len(rejections[0][0]), dtype=np.int64)
        for number, (where, _status) in reversed(list(enumerate(rejections, start=1))):
            np.putmask(codes, where, number)
        return Verdict(codes, lambda code: rejections[code - 1][1])


class Refusals:
    """What a run of filters said about some rows: each plugin that turned rows away, with the rows.

    Which plugin refused which row is looked up when it is asked for; mostly it is not, because a node was found.
    """

    __slots__ = ("_refused", "rows", "verdicts")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.verdicts: list[tuple[str, Verdict]] = []
        self._refused: list[NDArray[np.bool_]] = []
        """For each verdict the rows it decided about: no row is in two of them."""

    def add(self, plugin: str, verdict: Verdict, undecided: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Record a plugin's verdict where no earlier one decided; returns which rows are still undecided."""
        refused_rows: NDArray[np.bool_] = verdict.codes != 0
        refused_rows &= undecided
        if not np.count_nonzero(refused_rows):  # several times as quick as any() on thousands of nodes
            return undecided
        self.verdicts.append((plugin, verdict))
        self._refused.append(refused_rows)
        return undecided ^ refused_rows

    @property
    def passed(self) -> NDArray[np.bool_]:
        passed = np.ones(len(self.rows), dtype=np.bool_)
        for refused_rows in self._refused:
            passed ^= refused_rows
        return passed

    def status(self, position: int) -> Status | None:
        """The status of the row at a position; None when it passed."""
        for number, refused_rows in enumerate(self._refused):
            if refused_rows[position]:
                return self._status(number, int(self.verdicts[number][1].codes[position]))
        return None

    def kinds(self, keep: NDArray[np.bool_]) -> Iterator[tuple[Status, Rows]]:
        """Each distinct status among the kept rows that were turned away, with the rows that have it."""
        for number, refused_rows in enumerate(self._refused):
            refused = np.flatnonzero(keep & refused_rows)
            codes = self.verdicts[number][1].codes[refused]
            for code in _distinct(codes):
                yield self._status(number, code), self.rows[refused[codes == code]]

    def _status(self, number: int, code: int) -> Status:
        name, verdict = self.verdicts[number]
        status = refusal_of(name, verdict, code)
        return status if status.plugin else status.by(name)


class VerdictError(WrongAnswerError):
    """A Verdict whose `status_of` raises, or gives no refusal. It is seen when reasons are asked for."""

    def __init__(self, plugin: str, sentence: str) -> None:
        super().__init__(f'running "{plugin}" filter plugin: {sentence}', sentence)
        self.plugin = plugin


def refusal_of(plugin: str, verdict: Verdict, code: int) -> Status:
    """The status a filter's code stands for; anything but one that refuses the node, or fails, is a mistake."""
    what = f"status_of({code})"
    try:
        status: Any = verdict.status_of(code)
    except Exception as error:  # whatever the plugin raises
        raise VerdictError(plugin, f"{what}: {type(error).__name__}: {error}") from error
    if isinstance(status, Status) and (status.rejected or status.code == Code.ERROR):
        return status if status.message else Status(status.code, (no_reason(plugin),), status.plugin)
    given = status.code.name if isinstance(status, Status) else type(status).__name__
    raise VerdictError(plugin, f"{what} must give a Status that refuses the node, got {given}")


def no_reason(plugin: str) -> str:
    """What a plugin found wrong that does not say so."""
    return f"node(s) didn't satisfy plugin {plugin}"


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
        self._counted: list[int] | None = None
        self._chosen: dict[Code, tuple[int, Rows]] = {}
        self._reasons: tuple[int, str] | None = None

    def copy(self) -> NodeStatuses:
        copy = NodeStatuses(0, self.absent)
        copy._number, copy._statuses, copy._known = self._number.copy(), self._statuses.copy(), self._known.copy()
        copy.elsewhere = self.elsewhere.copy()
        copy._counted = None if self._counted is None else self._counted.copy()
        return copy

    def add_group(self, status: Status, rows: Rows) -> None:
        """Give many nodes one status, whatever they had."""
        self._number[rows] = self._number_of(status)
        self._counted = self._reasons = None
        self._chosen.clear()

    def set(self, row: int, status: Status | None) -> None:
        """Give one node its status; None: it was not looked at."""
        number = 0 if status is None else self._number_of(status)
        counted = self._counted
        if counted is not None:
            counted += [0] * (len(self._statuses) + 1 - len(counted))
            counted[self._number[row]] -= 1
            counted[number] += 1
        self._number[row] = number
        self._reasons = None
        self._chosen.clear()

    def set_named(self, statuses: Mapping[str, Status], row_of: Mapping[str, int]) -> None:
        """Give nodes statuses by name, whatever they had."""
        for name, status in statuses.items():
            row = row_of.get(name)
            if row is None:
                self.elsewhere[name] = status
                self._reasons = None
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
        yield from zip(self._statuses, self._count()[1:], strict=True)
        for status in self.elsewhere.values():
            yield status, 1

    def _count(self) -> list[int]:
        """How many rows have each number."""
        if self._counted is None:
            if not self._statuses:
                return [len(self._number)]
            self._counted = np.bincount(self._number, minlength=len(self._statuses) + 1).tolist()
        return self._counted

    def reasons(self, nodes: int) -> str:
        """How many of so many nodes were refused for which reason, sorted as text."""
        if self._reasons is None or self._reasons[0] != nodes:
            self._reasons = nodes, self._histogram(nodes)
        return self._reasons[1]

    def _histogram(self, nodes: int) -> str:
        counts: dict[str, int] = {}
        explicit = 0
        for status, number in self.counts():
            explicit += number
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + number
        if explicit < nodes:
            for reason in self.absent.reasons:
                counts[reason] = counts.get(reason, 0) + nodes - explicit
        return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items() if count))

    def __len__(self) -> int:
        return int(np.count_nonzero(self._number))

    def get(self, row: int) -> Status:
        number = int(self._number[row])
        return self._statuses[number - 1] if number else self.absent

    def with_code(self, code: Code, cluster: Cluster) -> Rows:
        """The present nodes whose status has this code, in visiting order."""
        order = cluster.order
        version, chosen = self._chosen.get(code, (-1, order.rows))
        if version != order.version:
            has_code = [self.absent.code == code, *(status.code == code for status in self._statuses)]
            if not self._statuses:
                chosen = order.rows if has_code[0] else order.rows[:0]
            elif any(count for has, count in zip(has_code, self._count(), strict=True) if not has):
                chosen = order.rows[np.array(has_code)[self._number[order.rows]]]
            self._chosen[code] = (order.version, chosen)
        return chosen


class Diagnosis:
    """All that is known about why a pod found no node.

    `notes` is for PostFilter plugins, under their own names: what they note of a failure they find again while pods of
    the same kind (names aside) fail in the same way and no node, no placed pod and no nomination has changed.
    """

    def __init__(self, nodes: int, statuses: NodeStatuses, notes: dict[str, Any] | None = None) -> None:
        self.nodes = nodes
        """How many nodes there are."""
        self.statuses = statuses
        """Why each node was refused."""
        self.notes: dict[str, Any] = {} if notes is None else notes
        self.unschedulable_plugins: set[str] = set()
        """The plugins that refused; their events wake the pod."""
        self.pending_plugins: set[str] = set()
        """Those of them that wait for something outside the scheduler."""
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
        """The text of the event: "0/5 nodes are available: …"."""
        text = f"0/{self.nodes} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            reasons = self.statuses.reasons(self.nodes)
            if reasons:
                text += f" {reasons}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text


class PreFilterOutcome(NamedTuple):
    """What PreFilter found: a rejection, or the node names left (None: all), and who restricted them."""

    status: Status | None
    node_names: frozenset[str] | None
    restricting: frozenset[str]


def no_node_left(restricting: set[str]) -> Status:
    """The rejection where these plugins together leave no node."""
    names = sorted(restricting)
    if len(names) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")


class Nomination(NamedTuple):
    """What PostFilter wants of the pod's nominated node: a name, or "" to clear it."""

    node_name: str


class PostFilterResult(NamedTuple):
    """PostFilter's answer. Success means room is being made; `nomination` None leaves the pod's nomination alone."""

    status: Status | None
    nomination: Nomination | None = None
    message: str = ""
    """What a success says of itself."""

    @property
    def node_name(self) -> str:
        """The node that the pod is nominated to; "" for none."""
        return "" if self.nomination is None else self.nomination.node_name


def outcome_code(outcome: PreFilterOutcome | PostFilterResult) -> Code:
    return code_of(outcome.status)


def refused_by_one(status: Status) -> Diagnosis:
    """The diagnosis when the one chosen node was refused after the choice, at Reserve or Permit."""
    statuses = NodeStatuses(1)
    statuses.set(0, status)
    diagnosis = Diagnosis(1, statuses)
    diagnosis.blame(status)
    return diagnosis
