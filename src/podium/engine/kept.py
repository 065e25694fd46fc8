"""Answers kept from one pod to the next: why deciding is fast.

Pods made from one template get the same answers from every plugin, and placing one changes a single row. So for each
kind of pod (equal signature, equal profile) the plugins' answers over all rows are kept, and before the next pod of
that kind only what moved is asked again:

- a plugin whose answer depends on the node's own row is asked about the rows in the journals, no others;
- a plugin that looks further is asked in full, but only when its watermark moved (for scores: or the feasible set);
- shares of the highest score are recomputed in full only when the highest score moved.

The best node is then one argmax. Nothing here decides differently from `decide`: when anything is unusual (no
feasible node, nodes named by PreFilter, sampling, a plugin that cannot tell what it depends on) the caller takes that
way instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, NodeInfo, Nodes, Rows
from podium.engine.choice import walk_key
from podium.framework.answers import call, node_status_of
from podium.framework.cycle import Cycle
from podium.framework.normalize import MAX_SCORE, Normalizer, Scores
from podium.framework.plugin import Plugin, Scope
from podium.framework.profile import ProfileRuntime, ScoreTable
from podium.framework.status import Code, Status
from podium.kube import Pod

FEW_ROWS = 4
RANK_BITS = 26
HIGHEST_TOTAL = 1 << (62 - RANK_BITS)

Mask = NDArray[np.bool_]
Touched = dict[int, None] | None
"""Rows to ask about again, in order; None: all."""


class Unkeepable(Exception):  # noqa: N818 (not an error: the caller decides the long way)
    """This pod's answers cannot be kept."""


class Kept:
    """What one profile's plugins say of one kind of pod, over all rows."""

    def __init__(self, runtime: ProfileRuntime, cycle: Cycle) -> None:
        self._runtime = runtime
        self._cluster = cycle.cluster
        self._build()

    def _build(self) -> None:
        runtime, rows = self._runtime, self._cluster.columns.rows
        self.rows = rows
        self.data: dict[str, Any] = {}
        self.skipped_filters: set[str] = set()
        self.skipped_scores: set[str] = set()
        self._feasible = np.zeros(rows, dtype=np.bool_)
        self._composite = np.full(rows, -1, dtype=np.int64)
        self._rank = np.zeros(rows, dtype=np.int64)
        self._total = np.zeros(rows, dtype=np.int64)
        self._refusals = np.zeros(rows, dtype=np.int16)
        filters = dict.fromkeys((*runtime.at("preFilter"), *runtime.at("filter")))
        judges, in_filter = set(runtime.at("preFilter")), set(runtime.at("filter"))
        self._filters = [KeptFilter(plugin, plugin in judges, plugin in in_filter) for plugin in filters]
        preparing = set(runtime.at("preScore"))
        self._scores = [
            KeptScore(plugin, plugin in preparing, runtime.weights[plugin.name], rows) for plugin in runtime.at("score")
        ]
        self._since_filters = Moves(self._cluster)
        self._since_scores = Moves(self._cluster)
        self._order_version = -1
        self._feasible_moved = True
        self._feasible_rows: Rows = np.zeros(0, dtype=np.intp)
        self._feasible_count = 0

    def _adopt(self, cycle: Cycle) -> None:
        """Let the pod's cycle see what plugins noted for its kind."""
        cycle.data = self.data
        cycle.skipped_filters = self.skipped_filters
        cycle.skipped_scores = self.skipped_scores

    def choose(self, cycle: Cycle, held: Sequence[int]) -> int | None:
        """The best row; None when no row is feasible, or one is that may be `held` for a nominated pod."""
        if self._cluster.columns.rows != self.rows:
            self._build()
        self._adopt(cycle)
        self._refresh_filters(cycle, *self._since_filters.moved())
        if not self._feasible_count or any(self._feasible[row] for row in held):
            return None
        if self._feasible_count == 1:
            best = int(self._feasible.argmax())
        else:
            self._refresh_scores(cycle, *self._since_scores.moved())
            best = int(self._composite.argmax())
        cycle.data = dict(self.data)  # what this pod's plugins note from here on is theirs alone
        return best

    def table(self) -> tuple[Rows, ScoreTable]:
        """The feasible rows in visiting order with their weighted scores, as of the last choice."""
        rows = self._feasible_rows
        parts = {kept.plugin.name: kept.part[rows] for kept in self._scores if not kept.skipped}
        return rows, ScoreTable(parts, self._total[rows])

    @property
    def bytes(self) -> int:
        """About how much memory the kept arrays take."""
        return self.rows * (35 + len(self._filters) + 16 * len(self._scores))

    # Filters

    def _refresh_filters(self, cycle: Cycle, nodes: Touched, touched: Touched) -> None:
        """Bring every filter's answers up to date, and with them the feasible set."""
        in_full = touched is None
        infos: dict[int, NodeInfo] = {}
        for kept in self._filters:
            if kept.freshness.lost(cycle.pod) or touched is None:
                self._ask_filter(kept, cycle)
                in_full = True
            elif kept.asks:
                rows = nodes if kept.scope == Scope.NODE else touched
                if rows:
                    self._ask_filter_about(kept, cycle, list(rows), infos)
        self._refresh_feasible(None if in_full else touched)

    def _ask_filter(self, kept: KeptFilter, cycle: Cycle) -> None:
        plugin = kept.plugin
        if kept.prepares:
            answer = call(f'running PreFilter plugin "{plugin.name}"', plugin.pre_filter, cycle)
            skip = isinstance(answer, Status) and answer.code == Code.SKIP
            if answer is not None and not skip:
                raise Unkeepable
            (self.skipped_filters.add if skip else self.skipped_filters.discard)(plugin.name)
            kept.skipped = skip
        refused = None
        if kept.asks:
            verdict = self._runtime.judge(plugin, cycle, Nodes(self._cluster), self._cluster.present)
            refused = None if verdict is None else verdict.codes != 0
        if kept.refused is not None:
            self._refusals -= kept.refused
        if refused is not None:
            self._refusals += refused
        kept.refused = refused

    def _ask_filter_about(self, kept: KeptFilter, cycle: Cycle, rows: list[int], infos: dict[int, NodeInfo]) -> None:
        plugin = kept.plugin
        present = self._cluster.present
        if kept.by_node and len(rows) <= FEW_ROWS:
            answers = [
                bool(present[row])
                and call(
                    f'running "{plugin.name}" filter plugin',
                    lambda row=row: node_status_of(plugin, plugin.filter_node(cycle, self._info(row, infos))),
                )
                is not None
                for row in rows
            ]
        else:
            index = np.array(rows, dtype=np.intp)
            verdict = self._runtime.judge(plugin, cycle, Nodes(self._cluster, index), present[index])
            answers = [False] * len(rows) if verdict is None else (verdict.codes != 0).tolist()
        if kept.refused is None:
            if not any(answers):
                return
            kept.refused = np.zeros(self.rows, dtype=np.bool_)
        for row, refused in zip(rows, answers, strict=True):
            if bool(kept.refused[row]) != refused:
                kept.refused[row] = refused
                self._refusals[row] += 1 if refused else -1

    def _info(self, row: int, infos: dict[int, NodeInfo]) -> NodeInfo:
        info = infos.get(row)
        if info is None:
            info = infos[row] = NodeInfo(self._cluster, row)
        return info

    def _refresh_feasible(self, touched: Touched) -> None:
        cluster = self._cluster
        moved = self._order_version != cluster.order.version
        if touched is None:
            feasible = (self._refusals == 0) & cluster.present
            moved = moved or not np.array_equal(feasible, self._feasible)
            self._feasible = feasible
        else:
            for row in touched:
                fits = bool(self._refusals[row] == 0 and cluster.present[row])
                if fits != bool(self._feasible[row]):
                    self._feasible[row] = fits
                    moved = True
        if moved:
            self._feasible_moved = True
            self._order_version = cluster.order.version
            order = cluster.order.rows
            self._feasible_rows = order[self._feasible[order]]
            self._feasible_count = len(self._feasible_rows)
            self._rank[self._feasible_rows] = walk_key(self._feasible_count, RANK_BITS)

    # Scores

    def _refresh_scores(self, cycle: Cycle, nodes: Touched, touched: Touched) -> None:
        whole = self._feasible_moved or touched is None
        infos: dict[int, NodeInfo] = {}
        for kept in self._scores:
            if kept.local:
                whole = self._refresh_local(kept, cycle, nodes, touched, infos) or whole
            elif kept.freshness.lost(cycle.pod) or self._feasible_moved or nodes is None or nodes:
                self._ask_score(kept, cycle)
                whole = True
        self._feasible_moved = False
        if whole or touched is None:
            self._compose()
            return
        for row in touched:
            total, rank = int(self._total[row]), int(self._rank[row])
            self._composite[row] = (total << RANK_BITS) | rank if self._feasible[row] else -1

    def _refresh_local(
        self,
        kept: KeptScore,
        cycle: Cycle,
        nodes: Touched,
        touched: Touched,
        infos: dict[int, NodeInfo],
    ) -> bool:
        """A score that depends on each row alone; True when all parts of the total changed."""
        if kept.freshness.lost(cycle.pod) or touched is None:
            self._prepare(kept, cycle, Nodes(self._cluster, self._feasible_rows))
            kept.raw = None if kept.skipped else self._raw(kept, cycle, Nodes(self._cluster))
            self._replace(kept, self._normalized(kept, cycle))
            return True
        if kept.raw is None:
            return False
        rows = list(nodes or ()) if kept.scope == Scope.NODE else list(touched)
        if rows:
            self._ask_score_about(kept, cycle, rows, infos)
        moved = bool(rows) or self._feasible_moved
        if kept.normalizer is not None and moved and kept.highest_of(self._feasible) != kept.highest:
            self._replace(kept, self._normalized(kept, cycle))
            return True
        if rows:
            self._update_parts(kept, rows)
        return False

    def _update_parts(self, kept: KeptScore, rows: list[int]) -> None:
        assert kept.raw is not None
        for row in rows:
            raw = int(kept.raw[row])
            share = raw if kept.normalizer is None else int(kept.shares(np.array([raw]))[0])
            if not 0 <= share <= MAX_SCORE and self._feasible[row]:
                self._runtime.check_scores(kept.plugin, np.array([share]))
            part = share * kept.weight
            self._total[row] += part - int(kept.part[row])
            kept.part[row] = part

    def _ask_score_about(self, kept: KeptScore, cycle: Cycle, rows: list[int], infos: dict[int, NodeInfo]) -> None:
        plugin, raw = kept.plugin, kept.raw
        assert raw is not None
        if kept.by_node and len(rows) <= FEW_ROWS:
            for row in rows:
                if self._cluster.present[row]:
                    raw[row] = call(
                        f'running Score plugins: plugin "{plugin.name}" failed with',
                        plugin.score_node,
                        cycle,
                        self._info(row, infos),
                    )
        else:
            index = np.array(rows, dtype=np.intp)
            raw[index] = self._raw(kept, cycle, Nodes(self._cluster, index))

    def _ask_score(self, kept: KeptScore, cycle: Cycle) -> None:
        """A score that looks beyond the row: asked in full, for the feasible nodes."""
        nodes = Nodes(self._cluster, self._feasible_rows)
        self._prepare(kept, cycle, nodes)
        part = np.zeros(self.rows, dtype=np.int64)
        if not kept.skipped:
            part[self._feasible_rows] = self._runtime.score_of(kept.plugin, cycle, nodes) * kept.weight
        self._replace(kept, part)

    def _prepare(self, kept: KeptScore, cycle: Cycle, nodes: Nodes) -> None:
        if kept.prepares:
            kept.skipped = not self._runtime.prepare_score(kept.plugin, cycle, nodes)
            (self.skipped_scores.add if kept.skipped else self.skipped_scores.discard)(kept.plugin.name)

    def _raw(self, kept: KeptScore, cycle: Cycle, nodes: Nodes) -> Scores:
        """Raw scores of the chosen rows; 0 for rows without a node, which one-node plugins cannot be asked about."""
        raw = np.zeros(len(nodes), dtype=np.int64)
        if hasattr(kept.plugin, "score"):
            raw[:] = self._runtime.raw_score_of(kept.plugin, cycle, nodes)
        else:
            present = np.flatnonzero(self._cluster.present[nodes.rows])
            raw[present] = self._runtime.raw_score_of(kept.plugin, cycle, Nodes(self._cluster, nodes.rows[present]))
        return raw

    def _normalized(self, kept: KeptScore, cycle: Cycle) -> Scores:
        """The weighted, normalised part of every row; rows that are not feasible get whatever the formula gives."""
        if kept.raw is None:
            return np.zeros(self.rows, dtype=np.int64)
        if kept.normalizer is not None:
            kept.highest = kept.highest_of(self._feasible)
        shares = kept.shares(kept.raw)
        self._runtime.check_scores(kept.plugin, shares[self._feasible_rows])
        return shares * kept.weight

    def _replace(self, kept: KeptScore, part: Scores) -> None:
        self._total += part - kept.part
        kept.part = part

    def _compose(self) -> None:
        """One number per row that sorts by total, then by who comes first among equals."""
        totals = self._total[self._feasible_rows]
        if len(totals) and (int(totals.max()) >= HIGHEST_TOTAL or int(totals.min()) < 0):
            raise Unkeepable
        self._composite.fill(-1)
        self._composite[self._feasible_rows] = (totals << RANK_BITS) | self._rank[self._feasible_rows]


class Moves:
    """Reads the journals: which rows changed since the last reading."""

    __slots__ = ("_cluster", "_nodes", "_pods")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes = self._pods = -1

    def moved(self) -> tuple[Touched, Touched]:
        """(rows whose node changed, those and the rows whose pods changed); None: too many or too long ago."""
        cluster = self._cluster
        nodes = cluster.node_changes.since(self._nodes)
        pods = cluster.pod_changes.since(self._pods)
        self._nodes, self._pods = cluster.node_changes.end, cluster.pod_changes.end
        if nodes is None or pods is None or len(nodes) + len(pods) > cluster.columns.rows // 2 + FEW_ROWS:
            return None, None
        return dict.fromkeys(nodes), dict.fromkeys((*nodes, *pods))


class Freshness:
    """Whether a plugin must be asked in full: its watermark moved, or it cannot tell."""

    __slots__ = ("_mark", "_watermark")

    def __init__(self, plugin: Any, scope: Scope) -> None:
        told_by_journals = type(plugin).watermark is Plugin.watermark and scope < Scope.CLUSTER
        self._watermark: Callable[[Pod], Hashable] | None = None if told_by_journals else plugin.watermark
        self._mark: Hashable = None

    def lost(self, pod: Pod) -> bool:
        if self._watermark is None:
            return False
        mark = self._watermark(pod)
        if mark is None or mark != self._mark:
            self._mark = mark
            return True
        return False


class KeptFilter:
    """One filter plugin's refusals, None while it refuses nothing."""

    __slots__ = ("_filters", "by_node", "freshness", "plugin", "prepares", "refused", "scope", "skipped")

    def __init__(self, plugin: Any, prepares: bool, filters: bool) -> None:
        self.plugin = plugin
        self.prepares = prepares
        self._filters = filters
        self.scope: Scope = plugin.filter_scope
        self.freshness = Freshness(plugin, self.scope)
        self.by_node = hasattr(plugin, "filter_node")
        self.skipped = False
        self.refused: Mask | None = None

    @property
    def asks(self) -> bool:
        return self._filters and not self.skipped


class KeptScore:
    """One score plugin's part of the total, and its raw scores where they depend on the row alone."""

    __slots__ = (
        "by_node",
        "freshness",
        "highest",
        "local",
        "normalizer",
        "part",
        "plugin",
        "prepares",
        "raw",
        "scope",
        "skipped",
        "weight",
    )

    def __init__(self, plugin: Any, prepares: bool, weight: int, rows: int) -> None:
        self.plugin = plugin
        self.prepares = prepares
        self.weight = weight
        self.scope: Scope = plugin.score_scope
        self.freshness = Freshness(plugin, self.scope)
        self.normalizer: Normalizer | None = plugin.normalizer
        custom = self.normalizer is None and hasattr(plugin, "normalize")
        self.local = self.scope < Scope.CLUSTER and not custom
        self.by_node = hasattr(plugin, "score_node")
        self.skipped = False
        self.raw: Scores | None = None
        self.part: Scores = np.zeros(rows, dtype=np.int64)
        self.highest = 0

    def highest_of(self, feasible: Mask) -> int:
        assert self.raw is not None
        return int(self.raw.max(initial=0, where=feasible))

    def shares(self, raw: Scores) -> Scores:
        return raw if self.normalizer is None else self.normalizer.shares(raw, self.highest)
