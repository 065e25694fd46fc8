"""Decides how many nodes are looked at for one pod.

Podium scores every node, because on columns that is cheap. kube-scheduler stops when it has found enough: a share of
the nodes that shrinks as the cluster grows, at least 100, starting where the last search ended. That rule applies
when the configuration sets percentageOfNodesToScore, when exact agreement with kube-scheduler is asked for, and to pods
whose nodes are sent to an extender.
"""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH = 100


def nodes_to_find(nodes: int, percentage: int) -> int:
    """kube-scheduler's number of feasible nodes after which it stops; percentage 0 means "adapt to the size".

    >>> [nodes_to_find(n, 0) for n in (50, 300, 1000, 5000, 15000)]
    [50, 144, 420, 500, 750]
    """
    if nodes < ENOUGH:
        return nodes
    share = percentage or max(5, 50 - nodes // 125)
    return max(ENOUGH, nodes * share // 100)


@dataclass
class Sampling:
    """Where the next search starts, shared by all profiles, and the share of nodes configured (None: all nodes)."""

    percentage: int | None = None
    parity: bool = False
    next_start: int = 0

    def limit(self, nodes: int, profile_percentage: int | None, *, as_kube_scheduler: bool = False) -> int:
        """How many feasible nodes are enough."""
        percentage = self.percentage if profile_percentage is None else profile_percentage
        if percentage is None:
            if not self.parity and not as_kube_scheduler:
                return nodes
            percentage = 0
        return nodes_to_find(nodes, percentage)

    def advance(self, seen: int, nodes: int) -> None:
        """Start the next search behind what this one has seen."""
        if nodes:
            self.next_start = (self.next_start + seen) % nodes
