"""Lists all workloads, and finds those that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from tools.bench.affinity import AFFINITY
from tools.bench.basic import BASIC
from tools.bench.devices import DEVICES
from tools.bench.events import EVENTS
from tools.bench.gangs import GANGS
from tools.bench.gpu_sharing import GPU_SHARING
from tools.bench.preemption import PREEMPTION
from tools.bench.promises import PROMISES
from tools.bench.quotas import QUOTAS
from tools.bench.scheduler_plugins import SCHEDULER_PLUGINS
from tools.bench.spreading import SPREADING
from tools.bench.variety import VARIETY
from tools.bench.volumes import VOLUMES
from tools.bench.workload import Workload

WORKLOADS: tuple[Workload, ...] = (
    *BASIC,
    *PREEMPTION,
    *AFFINITY,
    *SPREADING,
    *VOLUMES,
    *DEVICES,
    *EVENTS,
    *VARIETY,
    *GANGS,
    *QUOTAS,
    *PROMISES,
    *SCHEDULER_PLUGINS,
    *GPU_SHARING,
)


class UnknownWorkloadError(Exception):
    """No workload goes by that name."""


def select(patterns: Sequence[str]) -> list[Workload]:
    """The workloads whose name ("Case/Variant") or case matches one of the patterns, in order; all without patterns.

    >>> [workload.name for workload in select(["Turn*"])]
    ['Turnover/5000Nodes_10000Pods']
    """
    for pattern in patterns:
        if not any(_matches(workload, pattern) for workload in WORKLOADS):
            cases = ", ".join(dict.fromkeys(workload.case for workload in WORKLOADS))
            raise UnknownWorkloadError(f'no workload matches "{pattern}"; the cases are {cases}')
    return [each for each in WORKLOADS if not patterns or any(_matches(each, pattern) for pattern in patterns)]


def at_nodes(workload: Workload, nodes: int, patterns: Sequence[str]) -> Workload:
    """The workload for another number of nodes; one about devices keeps its own, unless a pattern is its plain name.

    >>> device = by_name("ExtendedResourceScoring/5000pods_500nodes")
    >>> [at_nodes(device, 50, patterns).sizes["nodes"] for patterns in ([], ["Ext*"], ["ExtendedResourceScoring"])]
    [500, 500, 50]
    """
    own_size = workload in DEVICES and not {workload.name, workload.case} & set(patterns)
    return workload if own_size else workload.at(nodes)


def by_name(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)


def _matches(workload: Workload, pattern: str) -> bool:
    return fnmatchcase(workload.name, pattern) or fnmatchcase(workload.case, pattern)
