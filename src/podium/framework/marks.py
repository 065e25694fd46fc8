"""Marks: by what it is seen that a kept answer of a plugin no longer holds, beyond the rows in the journals.

A plugin's answers are kept for a family of pods: pods that differ in nothing but the names of their claims. Its mark
for a pod is its `watermark`; a plugin that sees claims (any that does not say otherwise) gets those of the pod added,
so that it is asked anew about every pod with other claims.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from podium.framework.cycle import Cycle
from podium.framework.plugin import Plugin, Scope

Marker = Callable[[Cycle], Hashable]
"""cycle → the mark of its pod; None: nothing can be kept; (): nothing but changes of rows will ever matter."""


def marker_of(plugin: Any) -> Marker | None:
    """How a plugin's marks are found; None when changes of rows tell all."""
    filters = plugin.points & {"preFilter", "filter"} and plugin.filter_scope == Scope.CLUSTER
    scores = "score" in plugin.points and plugin.score_scope == Scope.CLUSTER
    told_by_journals = not filters and not scores and type(plugin).watermark is Plugin.watermark
    if told_by_journals:
        return _claims if plugin.sees_claims else None
    watermark: Callable[..., Hashable] = plugin.watermark
    if not plugin.sees_claims:
        return lambda cycle: watermark(cycle.pod)

    def with_claims(cycle: Cycle) -> Hashable:
        mark = watermark(cycle.pod)
        return mark if mark is None or not cycle.facts.claims else (mark, cycle.facts.claims)

    return with_claims


def _claims(cycle: Cycle) -> Hashable:
    return cycle.facts.claims
