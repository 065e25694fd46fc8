"""Decides by cached answers: an entry for each profile and signature, brought up to date by asking about what changed.

The entries used longest ago are dropped when the cached arrays outgrow their share of memory.

Pods made from one template get the same answers from every plugin, and placing one changes a single row. So for each
profile and signature the plugins' answers about all rows are cached, and before the next pod with that signature:

- a plugin whose answer depends on the node's own row is asked about the changed rows, no others;
- a plugin that looks further, or at claims, is asked about all rows, but only when its answer key moved (for scores
  that are not skipped: or the feasible set);
- shares of the highest score are recomputed for all rows only when the highest score moved.

The best node is then one argmax. Nothing here decides differently from `decide`: when anything is unusual (nodes named
by PreFilter, a plugin that fails) the answer is that the pod must be decided without the cache.

Also reports exceptions that the answer cache did not expect.

The decision is then made without the cache, so that a mistake in it costs time and not a pod. It must not stay unseen:
every such exception is counted, and the first one of each place in the code is reported with its traceback. Tests
switch `strict` on, under which it is raised.

Answers cached for pods that are all different cost more than they save. So a signature gets an entry when a second pod
with it comes, or one pod for the third time.
"""

from __future__ import annotations

import enum
import traceback
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from podium.cluster import Cluster, Rows
from podium.config.points import Point
from podium.engine.answer_cache.changed_rows import ChangedRows, read_changes
from podium.engine.answer_cache.filters import CachedFilter, CachedFilters
from podium.engine.answer_cache.scores import CachedScore, CachedScores
from podium.engine.decide import NodeSearch
from podium.engine.sampling import Sampling
from podium.framework.answer_keys import AnswerKeys
from podium.framework.answers import ScoreTable
from podium.framework.cycle import Cycle
from podium.framework.normalize import Scores
from podium.framework.profile import ProfileRuntime
from podium.framework.status import SUCCESS, Code, PluginError
from podium.framework.timer import Step, timed_cached

MOST_BYTES = 96 << 20

Key = tuple[str, bytes]
"""A profile's name, and the signature of pods."""


class CacheMiss(enum.Enum):
    """Why a pod must be decided without the cache."""

    THIS_POD = enum.auto()
    """PreFilter objects to this pod because of its claims, or for now; the answers for its signature hold."""
    THIS_SIGNATURE = enum.auto()
    """The answers for pods with this signature cannot be cached."""


def _code_unless_missed(miss: CacheMiss | None) -> Code | None:
    """What misses is decided, and timed, without the cache."""
    return SUCCESS if miss is None else None


class CacheEntry:
    """What one profile's plugins answered about pods with one signature, over all rows."""

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster) -> None:
        self._runtime = runtime
        self.timer = runtime.timer
        self._start = 0
        """Where the visiting of nodes begins."""
        self._cluster = cluster
        columns = 6 + len(runtime.filters) + 2 * len(runtime.scores)
        self.bytes = 8 * cluster.columns.rows * columns
        """About how much memory the arrays take at most."""
        self._build()

    def _build(self) -> None:
        runtime, cluster = self._runtime, self._cluster
        self._rows = cluster.columns.rows
        self._notes: dict[str, Any] = {}
        self._keys = AnswerKeys(runtime.dependences_at(Point.PRE_FILTER, Point.FILTER, Point.SCORE))
        self._filters = CachedFilters(runtime, cluster, self._keys)
        self._scores = CachedScores(runtime, cluster, self._filters)
        self._answers: list[CachedFilter | CachedScore] = [*self._filters.cached, *self._scores.cached]
        self._cursor = cluster.row_cursor()
        self._failed: NodeSearch | None = None  # the last answer, if it was that there is no node

    def decide(self, cycle: Cycle, start: int = 0) -> int | NodeSearch | CacheMiss:
        """The best row, or why there is none, with nodes visited from `start` on."""
        if self._cluster.columns.rows != self._rows:
            self._build()
        filters, scores, self._start = self._filters, self._scores, start
        cycle.data, cycle.skipped_filters, cycle.skipped_scores = self._notes, filters.skipped, scores.skipped
        miss = self._filter_rows(cycle)
        if miss is not None:
            return miss
        answer: int | NodeSearch | None
        if filters.count > 1:
            answer = scores.best(cycle)
            if answer is None:
                return CacheMiss.THIS_SIGNATURE
        elif filters.count:
            answer = int(filters.feasible.argmax())
        else:
            answer = self._failed = self._failed or filters.failure.search()
        cycle.data = dict(self._notes)  # what this pod's plugins note from here on is theirs alone
        return answer

    @timed_cached(Step.FILTER, _code_unless_missed)
    def _filter_rows(self, cycle: Cycle) -> CacheMiss | None:
        """Find the feasible rows, unless nothing changed since the last pod that fitted nowhere."""
        if self._failed is not None and self._is_fresh(cycle):
            return None
        self._failed = None
        return self._refresh_filters(cycle)

    def release(self) -> None:
        """Let go of everything, so that the arrays go at once; the entry cannot be used any more."""
        self._filters.failure.release()
        self.__dict__.clear()

    def table(self) -> tuple[Rows, ScoreTable]:
        """The feasible rows in visiting order with their weighted scores, as of the last choice."""
        rows = self._filters.feasible_rows
        return rows, self._scores.table(rows)

    @property
    def feasible(self) -> int:
        """How many nodes would have done, as of the last choice."""
        return self._filters.count

    def totals(self) -> tuple[Rows, Scores]:
        """The feasible rows in visiting order with their total scores, as of the last choice."""
        rows = self._filters.feasible_rows
        return rows, self._scores.totals(rows)

    def _is_fresh(self, cycle: Cycle) -> bool:
        """Whether all that filters depend on is as it was at the last answer."""
        if not self._cursor.at_end or self._filters.nominations_changed:
            return False
        moved = self._keys.moved(cycle)
        if moved:
            self._make_stale(moved)
        return self._filters.all_fresh

    def _refresh_filters(self, cycle: Cycle) -> CacheMiss | None:
        """Bring every filter's answers up to date, and with them the feasible set."""
        filters, scores = self._filters, self._scores
        moved = self._keys.moved(cycle)
        if moved:
            self._make_stale(moved)
        changes = read_changes(self._cursor, self._cluster)
        changed: ChangedRows | None = None
        if changes is None:
            self._make_stale(None)
        else:
            nodes, nodes_and_pods = changes
            if nodes_and_pods:
                changed = ChangedRows(self._cluster, nodes_and_pods)
                if not filters.ask_about(filters.by_row, cycle, changed):
                    return CacheMiss.THIS_SIGNATURE
                scores.pending.add(changed)
            if nodes:
                changed_nodes = ChangedRows(self._cluster, nodes)
                if not filters.ask_about(filters.by_node, cycle, changed_nodes):
                    return CacheMiss.THIS_SIGNATURE
                filters.doubtful.update(dict.fromkeys(nodes))
                scores.pending_nodes.add(changed_nodes)
        all_rows = not filters.all_fresh
        if all_rows:  # after the changed rows: where PreFilter objects to this pod, fresh answers are up to date
            objecting = filters.prepare(cycle)
            if objecting is not None:
                about_claims = cycle.facts.may_attach and objecting.has_key
                for_now = objecting.rejects and self._keys.may_move(objecting.plugin)
                return CacheMiss.THIS_POD if about_claims or for_now else CacheMiss.THIS_SIGNATURE
            if not filters.ask_stale(cycle):
                return CacheMiss.THIS_SIGNATURE
        cacheable = filters.settle(cycle, changed, all_rows=all_rows, start=self._start)
        return None if cacheable else CacheMiss.THIS_SIGNATURE

    def _make_stale(self, plugins: list[Any] | None) -> None:
        """These plugins must be asked about all rows; None: all plugins."""
        for each in self._answers:
            if plugins is None or each.plugin in plugins:
                each.stale = True
                if isinstance(each, CachedFilter):
                    self._filters.all_fresh = False
                else:
                    self._scores.all_fresh = False


MOST_SOURCES = 100


class UnexpectedErrors:
    """How many there were, and in which places of the code."""

    strict: ClassVar[bool] = False
    """Whether an unexpected exception is raised instead of reported."""

    def __init__(self) -> None:
        self.count = 0
        self._sources: set[tuple[str, int]] = set()

    def add(self, error: Exception, report: Callable[[str], None]) -> None:
        """Count an exception, and report it where it is the first of its place; to be called in its handler."""
        if self.strict:
            raise error
        self.count += 1
        last = traceback.extract_tb(error.__traceback__)[-1]
        source = last.filename, last.lineno or 0
        if source not in self._sources and len(self._sources) < MOST_SOURCES:
            self._sources.add(source)
            lines = "".join(traceback.format_exception(error)).rstrip()
            what = f"answer cache: unexpected {type(error).__name__}; pods are decided without it, more slowly"
            report(f"{what}:\n{lines}")


MOST_SIGNATURES = 10_000
PATIENCE = 2
"""So many times the only pod with a signature is decided without the cache."""

K = TypeVar("K")


class _History(msgspec.Struct, gc=False):
    """How often a signature came that has no entry, and the uid of the first pod with it."""

    first: str
    times: int = 0
    cacheable: bool = True


class SignatureHistory(Generic[K]):
    """The signatures without an entry that came last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[K, _History] = OrderedDict()

    def worth_an_entry(self, signature: K, uid: str) -> bool:
        """Count a pod; whether its signature has come often enough, and its answers can be cached."""
        history = self._of(signature, uid)
        history.times += 1
        return history.cacheable and (history.first != uid or history.times > PATIENCE)

    def not_cacheable(self, signature: K, uid: str) -> None:
        """Answers for this signature cannot be cached: it gets no entry while it is remembered."""
        self._of(signature, uid).cacheable = False

    def seen_once(self, signature: K) -> bool:
        history = self._seen.get(signature)
        return history is not None and history.times == 1

    def _of(self, signature: K, uid: str) -> _History:
        history = self._seen.get(signature)
        if history is None:
            history = self._seen[signature] = _History(uid)
            if len(self._seen) > MOST_SIGNATURES:
                self._seen.popitem(last=False)
        return history


class AnswerCache:
    """The answers of plugins, cached from pod to pod."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, CacheEntry] = OrderedDict()
        self._history: SignatureHistory[Key] = SignatureHistory()
        self.errors = UnexpectedErrors()
        self.bytes = 0
        """About how much memory the entries take."""
        self.decisions = 0
        """How many decisions were made by them."""
        self.last: CacheEntry | None = None
        """The entry that the last of them was made by."""

    def decide(self, runtime: ProfileRuntime, cycle: Cycle, sampling: Sampling) -> int | NodeSearch | None:
        """The best row by cached answers, or why there is none; None when the pod must be decided without them."""
        pod = cycle.pod
        nodes = len(cycle.cluster.order.rows)
        if runtime.handle.nominator.node_of(pod.uid) is not None or pod.status.nominated_node_name:
            return None
        if not runtime.scores or not runtime.filters:
            return None
        if sampling.limit(nodes, runtime.profile.percentage_of_nodes_to_score) < nodes:
            return None
        key = (runtime.name, cycle.facts.signature)
        entry = self._entries.get(key)
        if entry is None:
            if not self._history.worth_an_entry(key, pod.uid):
                return None
            entry = self._add(key, CacheEntry(runtime, cycle.cluster))
        else:
            self._entries.move_to_end(key)
        try:
            answer = entry.decide(cycle, sampling.next_start % max(nodes, 1))
        except PluginError:
            self._drop(key)  # decided without the cache, it is found out which plugin fails, and said
            return None
        except Exception as error:  # a mistake of the cache: the pod is decided without it
            self._drop(key)
            self.errors.add(error, runtime.handle.report)
            return None
        if isinstance(answer, CacheMiss):
            if answer is CacheMiss.THIS_SIGNATURE:
                self._drop(key)
                self._history.not_cacheable(key, pod.uid)
            return None
        sampling.advance(nodes, nodes)
        self.decisions += 1
        self.last = entry
        return answer

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    def decided_without(self, runtime: ProfileRuntime, cycle: Cycle) -> None:
        """A signature that came once may never come again: what plugins noted of it is dropped."""
        if self._history.seen_once((runtime.name, cycle.facts.signature)):
            cycle.facts.notes.clear()

    def get(self, runtime: ProfileRuntime, cycle: Cycle) -> CacheEntry | None:
        """The entry for the cycle's pod."""
        return self._entries.get((runtime.name, cycle.facts.signature))

    def drop(self, runtime: ProfileRuntime, cycle: Cycle) -> None:
        """Drop the entry for the cycle's pod, if there is one."""
        key = (runtime.name, cycle.facts.signature)
        if key in self._entries:
            self._drop(key)

    def _add(self, key: Key, entry: CacheEntry) -> CacheEntry:
        self._entries[key] = entry
        self.bytes += entry.bytes
        while self.bytes > MOST_BYTES and len(self._entries) > 1:
            self._drop(next(iter(self._entries)))
        return entry

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key)
        self.last = None
        self.bytes -= entry.bytes
        entry.release()
