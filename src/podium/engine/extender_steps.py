"""Adds extenders to a decision: they are asked after the filters and after the scores.

Filters of extenders run one after the other, each on what the one before left. Scores (0 to 10) count times the
extender's weight times 10; an extender that fails to score is ignored, and one that does not score at all counts as
having given every node a 0. That matters for ties: among the best nodes, those with a word from an extender go before
those without, and chance decides between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Rows
from podium.engine.choice import top_of_heap
from podium.framework.answers import ScoreTable, describe
from podium.framework.cycle import Cycle
from podium.framework.extender import (
    POINTS_PER_SCORE,
    Extender,
    ExtenderError,
    Filtered,
    HostScores,
    interested,
)
from podium.framework.handle import Handle
from podium.framework.status import PluginError, Status
from podium.kube import Node, Pod


class Left(NamedTuple):
    """The rows extenders left, what they statuses of nodes by name, and whether scores see the rows without pods."""

    rows: Rows
    statuses: dict[str, Status]
    bare: bool


def choose_among_nodes(extenders: Sequence[Extender]) -> bool:
    """Whether some extender has a use for more than one feasible node."""
    return any(extender.is_filter or extender.is_prioritizer for extender in extenders)


def see_nodes_of(extenders: Sequence[Extender], pod: Pod) -> bool:
    """Whether the feasible nodes of this pod are sent to an extender."""
    return choose_among_nodes(interested(extenders, pod))


def left_by_extenders(handle: Handle, cycle: Cycle, rows: Rows) -> Left:
    """Ask the filters of extenders about feasible rows; raises PluginError when one fails that must not."""
    pod, statuses, bare = cycle.pod, dict[str, Status](), False
    for extender in interested(handle.extenders, pod):
        if not len(rows):
            break
        if not extender.is_filter:
            continue
        try:
            with _failing_by_name(extender):
                answer = extender.filter(pod, _nodes(cycle.cluster, rows))
                rows = _rows_named(cycle.cluster, extender, answer, rows)
        except ExtenderError as error:
            if not extender.ignorable:
                raise PluginError(str(error)) from error
            handle.report(f"filtering nodes for pod {pod.key}: extender {extender.name} is skipped: {error}")
            continue
        statuses |= {name: Status.unschedulable(why) for name, why in answer.refused.items()}
        statuses |= {name: Status.unresolvable(why) for name, why in answer.unresolvable.items()}
        bare = bare or answer.bare
    return Left(rows, statuses, bare)


def with_extenders_scores(
    handle: Handle, cycle: Cycle, rows: Rows, plugins: ScoreTable
) -> tuple[ScoreTable, NDArray[np.bool_]]:
    """The plugins' scores with those of the extenders added, and which of the rows got an entry from any of them."""
    names = [cycle.cluster.names[row] for row in rows.tolist()]
    by_plugin, entries = dict(plugins.by_plugin), dict[str, int]()
    for extender, points in _points_given(handle, cycle, rows):
        if points is not None:
            by_plugin[extender.name] = _column(names, points) + by_plugin.get(extender.name, 0)
        for name, number in (dict.fromkeys(names, 0) if points is None else points).items():
            entries[name] = entries.get(name, 0) + number
    table = ScoreTable(by_plugin, plugins.total + _column(names, entries))
    return table, np.array([name in entries for name in names])


def best_position(total: NDArray[np.int64], named: NDArray[np.bool_], handle: Handle) -> int:
    """The best node's position: any of the best that extenders named, else the one a heap gives up first."""
    tied = np.flatnonzero((total == total.max()) & named)
    if not len(tied):
        return top_of_heap(total)
    return int(tied[handle.rng.randrange(len(tied)) if len(tied) > 1 else 0])


def _points_given(handle: Handle, cycle: Cycle, rows: Rows) -> Iterator[tuple[Extender, dict[str, int] | None]]:
    """The weighted scores of each interested extender by node; None from one that does not score.

    All are asked before the first is waited for.
    """
    pod, nodes = cycle.pod, _nodes(cycle.cluster, rows)
    waits: list[tuple[Extender, Callable[[], HostScores] | None]] = []
    for extender in interested(handle.extenders, pod):
        with _failing_to_score(handle, pod, extender):
            waits.append((extender, extender.prioritize(pod, nodes) if extender.is_prioritizer else None))
    for extender, wait in waits:
        if wait is None:
            yield extender, None
            continue
        points: dict[str, int] | None = None
        with _failing_to_score(handle, pod, extender):
            points = _weighted(wait(), extender.weight)
        if points is not None:
            yield extender, points


def _weighted(scores: HostScores, weight: int) -> dict[str, int]:
    points: dict[str, int] = {}
    for name, score in scores:
        if not isinstance(score, int):
            raise ExtenderError(f'the score of node "{name}" must be a whole number, got {score!r}')
        points[name] = points.get(name, 0) + score * weight * POINTS_PER_SCORE
    return points


def _rows_named(cluster: Cluster, extender: Extender, answer: Filtered, rows: Rows) -> Rows:
    row_of = {cluster.names[row]: row for row in rows.tolist()}
    for name in answer.names:
        if name not in row_of:
            raise ExtenderError(
                f'extender "{extender.name}" claims a filtered node "{name}" which is not found in the input node list'
            )
    return np.array([row_of[name] for name in answer.names], dtype=np.intp)


def _nodes(cluster: Cluster, rows: Rows) -> list[Node]:
    nodes = [cluster.nodes[row] for row in rows.tolist()]
    return [node for node in nodes if node is not None]


def _column(names: Sequence[str], points: dict[str, int]) -> NDArray[np.int64]:
    """int64[nodes]; past 64 bits numbers wrap, as kube-scheduler's do."""
    wrapped = {name: (number + 2**63) % 2**64 - 2**63 for name, number in points.items()}
    return np.array([wrapped.get(name, 0) for name in names], dtype=np.int64)


@contextmanager
def _failing_by_name(extender: Extender) -> Iterator[None]:
    """Whatever an extender raises is its failure."""
    try:
        yield
    except ExtenderError:
        raise
    except Exception as error:  # an extender that is handed in may raise anything
        raise ExtenderError(f'extender "{extender.name}": {describe(error)}') from error


@contextmanager
def _failing_to_score(handle: Handle, pod: Pod, extender: Extender) -> Iterator[None]:
    """Without an extender's scores the others decide."""
    try:
        with _failing_by_name(extender):
            yield
    except ExtenderError as error:
        handle.report(f"scoring nodes for pod {pod.key}: extender {extender.name} gives no scores: {error}")
