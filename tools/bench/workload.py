"""Describes a workload: operations and sizes, under the names scheduler_perf gives them.

A test case is a list of operations; each of its workloads fills in the sizes. Asked for another number of nodes, a
workload scales all sizes by one factor, as scheduler_perf's own smaller variants do. Where the number of nodes is no
size (one node, or two), the pods are scaled from the size of the cluster the case was written for. Cases about single
events are written for few nodes and do not grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tools.bench.operations import Operation

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Workload:
    case: str
    variant: str
    operations: tuple[Operation, ...]
    sizes: Sizes
    written_for: int
    """The number of nodes the sizes go with."""
    grows: bool = True
    config: str | None = None
    """The configuration it is run with, where none is given; None: the default one."""

    @property
    def name(self) -> str:
        return f"{self.case}/{self.variant}"

    def at(self, nodes: int) -> Workload:
        """The workload for another number of nodes.

        >>> Workload("A", "b", (), {"nodes": 5000, "init": 1000, "measured": 10000}, 5000).at(50).sizes
        {'nodes': 50, 'init': 10, 'measured': 100}
        """
        if not self.grows:
            nodes = min(nodes, self.written_for)
        factor = nodes / self.written_for
        sizes = {name: max(1, round(size * factor)) if size else 0 for name, size in self.sizes.items()}
        return replace(self, sizes=sizes, written_for=nodes)

    def with_sizes(self, sizes: Sizes) -> Workload:
        """The workload with some of its sizes set."""
        return replace(self, sizes={**self.sizes, **sizes})


def case(
    name: str,
    operations: Sequence[Operation],
    variants: Mapping[str, Sizes],
    *,
    written_for: int | None = None,
    grows: bool = True,
    config: str | None = None,
) -> tuple[Workload, ...]:
    """The workloads of a test case, by variant; without `written_for` the size called "nodes" says it."""
    return tuple(
        Workload(name, variant, tuple(operations), sizes, written_for or sizes["nodes"], grows, config)
        for variant, sizes in variants.items()
    )
