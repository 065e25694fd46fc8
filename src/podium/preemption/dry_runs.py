"""Caches what dry runs of preemption found on each row, for as long as it holds.

The result on a row holds while the node, its pods, the pods nominated to it and the budgets stay as they are, provided
no filter in force looks beyond the row; where one does, nothing is cached. It holds for all preemptors with one
signature, if the filters in force have equal answer keys for them. Results are numbers per row, so that
choosing among thousands of them is a few array operations.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Mask, PlacedPod, Rows
from podium.framework.cycle import Cycle
from podium.framework.nominator import Nominator
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Status
from podium.kube import Pod

UNKNOWN, HARMLESS, VIOLATING = 0, -1, -2
"""What a row's code says; a number above 0 is that of a refusal."""
NO_PODS = np.iinfo(np.int64).max
MOST_ENTRIES = 64


class Harm(NamedTuple):
    """What evicting would cost, the gravest first; less is better."""

    violations: int
    highest_priority: int
    sum_of_priorities: int
    victims: int
    recency: float
    """Minus the earliest start among the victims of the highest priority: better the youngest."""


class Candidate(NamedTuple):
    """A node that would take the pod once its victims (most important first) are gone."""

    row: int
    node_name: str
    victims: tuple[Pod, ...]
    harm: Harm


class Results:
    """What was found for preemptors with one signature; `codes`: int32[rows]."""

    __slots__ = ("_candidates", "_harm", "_number", "_statuses", "codes")

    def __init__(self, rows: int) -> None:
        self.codes = np.zeros(rows, dtype=np.int32)
        self._harm = np.zeros((len(Harm._fields), rows))  # sums of fewer than 2^21 priorities are exact in a float
        self._candidates: dict[int, Candidate] = {}
        self._statuses: list[Status] = []
        self._number: dict[Status, int] = {}

    def note(self, row: int, found: Candidate | Status) -> int:
        """Note what was found on a row; returns its code."""
        if isinstance(found, Status):
            code = self._number_of(found)
        else:
            code = VIOLATING if found.harm.violations else HARMLESS
            self._harm[:, row] = found.harm
            self._candidates[row] = found
        self.codes[row] = code
        return code

    def refuse_unknown(self, where: Mask, status: Status) -> None:
        """Refuse the marked rows of which nothing is known."""
        refused = self.codes == UNKNOWN
        refused &= where
        if np.count_nonzero(refused):
            self.codes[refused] = self._number_of(status)

    def _number_of(self, status: Status) -> int:
        number = self._number.get(status)
        if number is None:
            self._statuses.append(status)
            number = self._number[status] = len(self._statuses)
        return number

    def refusals(self, rows: Rows) -> list[tuple[Status, Rows]]:
        """Each distinct refusal among some rows with the rows that have it; the one that is met first comes first."""
        codes = self.codes[rows]
        numbers, first = np.unique(codes, return_index=True)
        found = [number for number in numbers[first.argsort()].tolist() if number > 0]
        return [(self._statuses[number - 1], rows[codes == number]) for number in found]

    def candidates(self, rows: Rows) -> Sequence[Candidate]:
        return Candidates(self._candidates, rows)

    def least_harm(self, rows: Rows) -> Sequence[Candidate]:
        """Of candidates those that rank best; more than one when nothing tells them apart."""
        harm = self._harm.take(rows, axis=1)
        best = (harm == harm.min(axis=1, keepdims=True)).all(axis=0)  # mostly some row is the best in every respect
        if not np.count_nonzero(best):
            best = np.ones(len(rows), dtype=np.bool_)
            for column in harm:
                best &= column == column[best].min()
        return self.candidates(rows[best])


class Candidates(Sequence[Candidate]):
    """The candidates of some rows, looked up when asked for: mostly only the first is. Good until the next search."""

    def __init__(self, candidates: Mapping[int, Candidate], rows: Rows) -> None:
        self._candidates = candidates
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> Candidates: ...

    def __getitem__(self, index: int | slice) -> Candidate | Candidates:
        if isinstance(index, slice):
            return Candidates(self._candidates, self._rows[index])
        return self._candidates[int(self._rows[index])]


class DryRuns:
    """The results by signature and answer keys of the preemptor, the oldest dropped."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def refreshed(self, runtime: ProfileRuntime, cycle: Cycle) -> Results:
        """The results that still hold for this pod; add to it what is found out."""
        nominator = runtime.handle.nominator
        key = self._key(runtime, cycle)
        if key is None or nominator.node_of(cycle.pod.uid) is not None:
            return Results(cycle.cluster.columns.rows)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(cycle.cluster, nominator)
            if len(self._entries) > MOST_ENTRIES:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        return entry.refreshed()

    def _key(self, runtime: ProfileRuntime, cycle: Cycle) -> Hashable:
        """Equal for preemptors with equal results on every row; None when these depend on more than the rows."""
        active = runtime.active_filters(cycle)
        if active.beyond_rows:
            return None
        keys: list[tuple[str, Hashable]] = []
        for plugin in active.filters:
            key_of = runtime.dependences[plugin.plugin].key_of
            key = () if key_of is None else key_of(cycle)
            if key is None:
                return None
            keys.append((plugin.name, key))
        return cycle.facts.signature, tuple(keys)


class _Entry:
    """Results for preemptors with one signature, with how far the journals were read."""

    def __init__(self, cluster: Cluster, nominator: Nominator) -> None:
        self._cluster = cluster
        self._results = Results(0)
        self._rows = cluster.row_cursor()
        self._nominations = nominator.changes.cursor()
        self._budgets = -1

    def refreshed(self) -> Results:
        cluster, changed, nominated = self._cluster, self._rows.read(), self._nominations.read()
        budgets, rows = cluster.objects.budgets.version, cluster.columns.rows
        known = budgets == self._budgets and len(self._results.codes) == rows
        if changed is None or nominated is None or not known:
            self._results, self._budgets = Results(rows), budgets
        else:
            nodes, pods = changed
            named = (cluster.row_of[name] for name in nominated if name in cluster.row_of)
            self._results.codes[[*nodes, *pods, *named]] = UNKNOWN
        return self._results


class LowestPriorities:
    """The lowest priority among the pods of each row, or less: that it has risen may go unnoticed.

    Pods stand on their row in the order they came, so what came last time is where a look from behind may end.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lowest: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._newest: list[PlacedPod | None] = []
        self._cursor = cluster.pod_changes.cursor()

    def refreshed(self) -> NDArray[np.int64]:
        """int64[rows]; NO_PODS for a row without pods."""
        changed, rows = self._cursor.read(), self._cluster.columns.rows
        if len(self._lowest) != rows:
            self._lowest = np.full(rows, NO_PODS, dtype=np.int64)
            self._newest = [None] * rows
            changed = None
        for row in range(rows) if changed is None else dict.fromkeys(changed):
            self._look_at(row)
        return self._lowest

    def hopeless(self, preemptor: Pod) -> Mask:
        """bool[rows]: no pod there has a lower priority."""
        return self.refreshed() >= preemptor.priority

    def _look_at(self, row: int) -> None:
        newest, lowest = self._newest[row], NO_PODS
        pods = self._cluster.pods_on[row]
        for placed in reversed(pods.values()):
            if placed is newest:
                lowest = min(lowest, int(self._lowest[row]))
                break
            lowest = min(lowest, placed.pod.priority)
        self._lowest[row] = lowest
        self._newest[row] = next(reversed(pods.values()), None)
