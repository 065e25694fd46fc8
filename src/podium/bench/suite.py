"""Lists all workloads, and finds those that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from podium.bench.affinity import AFFINITY
from podium.bench.basic import BASIC
from podium.bench.devices import DEVICES
from podium.bench.events import EVENTS
from podium.bench.gangs import GANGS
from podium.bench.gpu_sharing import GPU_SHARING
from podium.bench.preemption import PREEMPTION
from podium.bench.promises import PROMISES
from podium.bench.quotas import QUOTAS
from podium.bench.scheduler_plugins import SCHEDULER_PLUGINS
from podium.bench.spreading import SPREADING
from podium.bench.variety import VARIETY
from podium.bench.volumes import VOLUMES
from podium.bench.workload import Workload

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


def by_name(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)


def _matches(workload: Workload, pattern: str) -> bool:
    return fnmatchcase(workload.name, pattern) or fnmatchcase(workload.case, pattern)
