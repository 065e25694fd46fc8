"""Finds which filters of a profile have something to say about a pod once PreFilter has run, and how far they look."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from podium.framework.methods import FilterMethods, PreFilterMethods
from podium.framework.plugin import Scope


class InForce(NamedTuple):
    """The filters that have something to say about a pod, and how far they look."""

    filters: tuple[FilterMethods, ...]
    moving: tuple[FilterMethods, ...]
    """Those that pods on the node can move."""
    beyond_rows: bool
    """Some depend on more than each node's own row."""
    followers: tuple[PreFilterMethods, ...]
    """PreFilter plugins whose notes follow pods that come and go."""
    sums_only: bool
    """No filter looks at more of a node's pods than sums and their number, and no notes follow them."""


def filters_in_force(
    filters: Sequence[FilterMethods], pre_filters: Sequence[PreFilterMethods], skipped: Set[str]
) -> InForce:
    """Those whose plugin PreFilter has not skipped."""
    left = tuple(plugin for plugin in filters if plugin.name not in skipped)
    furthest = max((plugin.scope for plugin in left), default=Scope.NODE)
    followers = tuple(
        plugin
        for plugin in pre_filters
        if plugin.name not in skipped and (plugin.add_pod is not None or plugin.remove_pod is not None)
    )
    return InForce(
        left,
        tuple(plugin for plugin in left if plugin.scope > Scope.NODE),
        beyond_rows=furthest == Scope.CLUSTER,
        followers=followers,
        sums_only=furthest <= Scope.TOTALS and not followers,
    )
