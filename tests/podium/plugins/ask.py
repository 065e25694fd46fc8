"""Asking one plugin about all nodes of a cluster, the way the runtime would, and in every other way it may."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, Code, Cycle, Status
from podium.framework.answers import node_status_of, raw_scores_of, verdict_of
from podium.kube import Pod


def refusals(plugin: Any, pod: Pod, cluster: Cluster) -> dict[str, Status | None]:
    """Why each present node is refused, None for those that pass; checked to be the same on every choice of rows."""
    cycle = Cycle(pod, cluster)
    if hasattr(plugin, "pre_filter") and isinstance(plugin.pre_filter(cycle), Status):
        assert plugin.pre_filter(cycle) == SKIP
        return dict.fromkeys(present_names(cluster))
    rows = cluster.order.rows
    found = _statuses(plugin, cycle, Nodes(cluster))
    assert _statuses(plugin, cycle, Nodes(cluster, rows)) == [found[row] for row in rows]
    assert _statuses(plugin, cycle, Nodes(cluster, rows[::-2])) == [found[row] for row in rows[::-2]]
    for row in rows.tolist():
        one = Nodes(cluster, np.array([row]))
        assert _statuses(plugin, cycle, one) == [found[row]]
        if hasattr(plugin, "filter_node"):
            assert node_status_of(plugin, plugin.filter_node(cycle, one.info(0))) == found[row]
    return {cluster.names[row]: found[row] for row in rows}


def _statuses(plugin: Any, cycle: Cycle, nodes: Nodes) -> list[Status | None]:
    verdict = verdict_of(plugin, plugin.filter(cycle, nodes), nodes)
    if verdict is None:
        return [None] * len(nodes)
    return [verdict.status_of(code) if code else None for code in verdict.codes.tolist()]


def raw_scores(plugin: Any, pod: Pod, cluster: Cluster) -> dict[str, int]:
    """Each present node's score before normalising; checked to be the same on every choice of rows."""
    cycle = Cycle(pod, cluster)
    rows = cluster.order.rows
    feasible = Nodes(cluster, rows)
    if hasattr(plugin, "pre_score"):
        assert plugin.pre_score(cycle, feasible) is None
    found = _scores(plugin, cycle, Nodes(cluster))
    assert _scores(plugin, cycle, feasible) == [found[row] for row in rows]
    for row in rows.tolist():
        one = Nodes(cluster, np.array([row]))
        assert _scores(plugin, cycle, one) == [found[row]]
        if hasattr(plugin, "score_node"):
            assert plugin.score_node(cycle, one.info(0)) == found[row]
    return {cluster.names[row]: found[row] for row in rows}


def scores(plugin: Any, pod: Pod, cluster: Cluster) -> dict[str, int]:
    """Each present node's score as it counts, before the plugin's weight."""
    raw = raw_scores(plugin, pod, cluster)
    if plugin.normalizer is None:
        return raw
    normalised = plugin.normalizer.apply(np.array(list(raw.values()), dtype=np.int64))
    return dict(zip(raw, normalised.tolist(), strict=True))


def _scores(plugin: Any, cycle: Cycle, nodes: Nodes) -> list[int]:
    answer = plugin.score(cycle, nodes)
    assert type(answer) is int or answer.dtype == np.int64
    found: list[int] = raw_scores_of(answer, nodes).tolist()
    return found


def refused(found: dict[str, Status | None]) -> dict[str, tuple[Code, tuple[str, ...]]]:
    """The refused nodes with code and reasons, for comparing with plain values."""
    return {name: (status.code, status.reasons) for name, status in found.items() if status is not None}


def present_names(cluster: Cluster) -> list[str]:
    return [cluster.names[row] for row in cluster.order.rows]


def hint_of(plugin: Any, resource: str, number: int = 0) -> Any:
    """The hint of a plugin's interest in a resource (the n-th in it)."""
    return [interest.hint for interest in plugin.interests() if interest.resource == resource][number]


def events_of(plugin: Any) -> list[tuple[str, int]]:
    return [(interest.resource, int(interest.action)) for interest in plugin.interests()]
