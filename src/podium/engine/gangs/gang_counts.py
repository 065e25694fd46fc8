"""Counts the members of every gang that a scheduler knows: with a node, and in all."""

from __future__ import annotations

from collections.abc import Iterator

from podium.cluster.pod_groups import PodGroupStates
from podium.engine.scheduler import Scheduler
from podium.framework.gang import GangCount


def gang_counts(engine: Scheduler) -> list[GangCount]:
    """The gangs of plugins and those among the PodGroups of scheduling.k8s.io, those that wait first."""
    found = {
        gang.key: gang
        for runtime in engine.profiles.values()
        for plugin in runtime.gang_plugins
        for gang in plugin.gangs()
    }
    found |= {gang.key: gang for gang in _pod_groups(engine)}
    return sorted(found.values(), key=lambda gang: (gang.assigned >= gang.minimum, gang.key))


def _pod_groups(engine: Scheduler) -> Iterator[GangCount]:
    """The gangs among the PodGroups of scheduling.k8s.io, where the gate for these is on."""
    groups = engine.cluster.objects.pod_groups
    for state in engine.cluster.account(PodGroupStates) or ():
        group = groups.get(state.key)
        if group is not None and group.min_count is not None:
            yield GangCount(state.key, group.min_count, state.members, state.scheduled)
