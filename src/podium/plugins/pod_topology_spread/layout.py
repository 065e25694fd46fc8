"""Assigns each node to the domain it counts for.

A constraint counts pods per value of its topology key, but not on every node: nodes may have to carry all topology
keys, to match the pod's node selector and affinity, to have only taints that the pod tolerates. What is left is one
array: for each row the number of its value, 0 where the row does not count. It depends on nodes and on few traits of
the pod, not on placed pods, so it is kept until a label or a taint changes; counting is then one sum per domain.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Mask, Nodes
from podium.kube import Pod
from podium.kube.selector import compile_node_selector, selector_from_labels
from podium.kube.toleration import untolerated
from podium.plugins.pod_topology_spread.constraints import Constraint, Rules

MOST_LAYOUTS = 256


class Layout(NamedTuple):
    value_of_row: NDArray[np.intp]
    """The number of the row's label value; 0: the row does not count."""
    domains: NDArray[np.intp]
    """The values that some counting row has."""
    values: int
    """How many value numbers there are, 0 included."""

    def sums(self, per_row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Per value the sum over the rows that count; entry 0 stays 0."""
        totals = np.bincount(self.value_of_row, weights=per_row, minlength=self.values).astype(np.int64)
        totals[0] = 0
        return totals


class Layouts:
    """The layouts in use, the oldest dropped."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._layouts: dict[Hashable, tuple[tuple[int, int, int], Layout]] = {}
        self._last_keys: tuple[object, tuple[int, int], Mask] | None = None

    def counting(self, pod: Pod, rules: Rules, constraint: Constraint) -> Layout:
        """The rows whose pods count for the constraint."""
        affinity = _node_traits(pod) if constraint.honors_affinity else None
        return self._layout(pod, rules, constraint.topology_key, affinity, constraint.honors_taints)

    def plain(self, pod: Pod, rules: Rules, constraint: Constraint) -> Layout:
        """The rows that have what it takes to be in a domain, whatever the constraint's policies."""
        return self._layout(pod, rules, constraint.topology_key, None, False)

    def _layout(self, pod: Pod, rules: Rules, key: str, affinity: Hashable, honors_taints: bool) -> Layout:
        cluster = self._cluster
        required = rules.keys if rules.require_all else None
        name = (key, required, affinity, pod.spec.tolerations if honors_taints else None)
        # A pod on a node that is not known yet adds a row without changing any label.
        version = cluster.columns.rows, cluster.labels.version, cluster.taints.version if honors_taints else 0
        known = self._layouts.get(name)
        if known is not None and known[0] == version:
            return known[1]
        counts = self._with_all(required).copy() if required else cluster.present.copy()
        if affinity is not None:
            counts &= _meets_node_affinity(pod, cluster)
        if honors_taints:
            counts &= _tolerates(pod, cluster)
        layout = _lay_out(cluster, key, counts)
        self._layouts.pop(name, None)
        if len(self._layouts) >= MOST_LAYOUTS:
            del self._layouts[next(iter(self._layouts))]
        self._layouts[name] = version, layout
        return layout

    def _with_all(self, keys: Collection[str]) -> Mask:
        """Which rows have all these labels; found once for the constraints of a pod, however many it has."""
        cluster = self._cluster
        version = cluster.columns.rows, cluster.labels.version
        if self._last_keys is None or self._last_keys[0] is not keys or self._last_keys[1] != version:
            mask: Mask = cluster.present.copy()
            for key in keys:
                mask &= cluster.labels.column(key).ids != 0
            self._last_keys = keys, version, mask
        return self._last_keys[2]


def _lay_out(cluster: Cluster, key: str, counts: Mask) -> Layout:
    column = cluster.labels.column(key)
    value_of_row = column.ids.astype(np.intp)
    # A node without the label is in the same domain as one whose label is empty. Where all keys are required there is
    # no such node left, and where no label is empty the two cannot meet.
    value_of_row[value_of_row == 0] = column.id_of.get("", 0)
    value_of_row[~counts] = 0
    values = len(column.values)
    present = np.bincount(value_of_row, minlength=values) > 0
    present[0] = False
    return Layout(value_of_row, np.flatnonzero(present), values)


def _node_traits(pod: Pod) -> Hashable:
    """What the pod asks of nodes, as a value; None when it asks nothing."""
    spec = pod.spec
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    required = None if affinity is None else affinity.required
    if required is None and not spec.node_selector:
        return None
    return tuple(sorted(spec.node_selector.items())), required


def _meets_node_affinity(pod: Pod, cluster: Cluster) -> Mask:
    """Which rows the pod's node selector and required node affinity allow; malformed terms match no node."""
    nodes, spec = Nodes(cluster), pod.spec
    answer = nodes.match(selector_from_labels(spec.node_selector).requirements)
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    if affinity is not None and affinity.required is not None:
        answer = answer & nodes.match_node_selector(compile_node_selector(affinity.required))
    return answer


def _tolerates(pod: Pod, cluster: Cluster) -> Mask:
    tolerations = pod.spec.tolerations
    answer: Mask = Nodes(cluster).ask_taints(lambda taints: untolerated(taints, tolerations) is None, np.bool_)
    return answer
