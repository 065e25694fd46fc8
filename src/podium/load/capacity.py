"""Gives the cpu that nodes have as a whole, in thousandths: what utilisation is a share of.

Scheduling counts with allocatable, which is less by what is set aside for the system; measurements of a node are about
all of it. A node that states no capacity has what it offers.
"""

from __future__ import annotations

from kubecel.quantity import milli
from podium.cluster import Cluster
from podium.framework.row_numbers import RowNumbers


def cpu_capacity() -> RowNumbers:
    """One line: the capacity of each row; 0 where there is no node."""
    return RowNumbers(1, _of_row)


def _of_row(cluster: Cluster, row: int) -> list[int]:
    node = cluster.nodes[row]
    if node is None:
        return [0]
    status = node.status
    return [max(0, milli(status.capacity.get("cpu", status.allocatable.get("cpu", 0))))]
