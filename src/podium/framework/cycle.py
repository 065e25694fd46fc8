"""Holds one pod's way through the scheduler: the pod, the cluster it sees, and what plugins note on the way.

Plugins keep their notes in `data` under their own name (or a name they share). A dry run works on a clone: notes that
have a `clone()` are copied by it, all others are shared, as nothing but `add_pod` and `remove_pod` changes notes after
PreFilter and PreScore (`notes` finds plugins that change shared ones).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.cluster import Cluster, Mask, Nodes, PodFacts, Rows
from podium.kube import Pod


class Cycle:
    """The pod being decided on (`pod`), what it asks for (`facts`), the `cluster`, and the plugins' notes (`data`)."""

    __slots__ = (
        "cluster",
        "data",
        "facts",
        "hinted_node",
        "placement",
        "pod",
        "pods_to_activate",
        "skipped_filters",
        "skipped_scores",
        "undecided",
        "visiting",
    )

    def __init__(self, pod: Pod, cluster: Cluster) -> None:
        self.pod = pod
        """The pod that is decided on."""
        self.cluster = cluster
        """The state that the decision reads; `handle.cluster` is the same."""
        self.facts: PodFacts = cluster.facts.of(pod)
        """What the pod asks for, computed once for equal pods."""
        self.data: dict[str, Any] = {}
        """Notes between methods, under the name of the plugin."""
        self.skipped_filters: set[str] = set()
        self.skipped_scores: set[str] = set()
        self.pods_to_activate: dict[str, Pod] = {}
        self.hinted_node = ""
        """The node to try first, unless the pod is nominated to one: the next best of the pod before it."""
        self.placement: Rows | None = None
        """The rows to choose among, in visiting order; None: all."""
        self.visiting: Rows | None = None
        """The rows in the order in which they are visited, while they are filtered; None: as they come."""
        self.undecided: tuple[Nodes, Mask] | None = None
        """The nodes that are filtered, and which of them no plugin has rejected so far; None: any may be."""

    def undecided_rows(self, rows: Rows) -> Rows:
        """Those of the rows that no plugin has rejected so far, in visiting order: where answers take long to find."""
        if self.undecided is not None:
            nodes, mask = self.undecided
            if nodes.chosen is not None:
                chosen, mask = nodes.chosen[mask], np.zeros(self.cluster.columns.rows, dtype=np.bool_)
                mask[chosen] = True
            rows = rows[mask[rows]]
        if self.visiting is None or len(rows) < 2:
            return rows
        turn = np.zeros(self.cluster.columns.rows, dtype=np.int64)
        turn[self.visiting] = np.arange(len(self.visiting))
        return rows[np.argsort(turn[rows], kind="stable")]

    def forget_notes(self) -> None:
        """Start over: as if no plugin had been asked yet."""
        self.data = {}
        self.skipped_filters = set()
        self.skipped_scores = set()

    def clone(self) -> DryRunCycle:
        """A copy for a dry run: changes to its data leave the original alone."""
        copy = DryRunCycle.__new__(DryRunCycle)
        copy.original = self.data
        copy.pod, copy.cluster, copy.facts = self.pod, self.cluster, self.facts
        copy.data = {name: note.clone() if hasattr(note, "clone") else note for name, note in self.data.items()}
        copy.skipped_filters = self.skipped_filters
        copy.skipped_scores = self.skipped_scores
        copy.pods_to_activate = {}
        copy.hinted_node = self.hinted_node
        copy.placement = self.placement
        copy.visiting, copy.undecided = self.visiting, None
        return copy


class DryRunCycle(Cycle):
    """A cycle in which pods are tried on a node, or taken off it, without effect on the decision."""

    __slots__ = ("original",)

    original: dict[str, Any]
    """The notes it was cloned from."""
