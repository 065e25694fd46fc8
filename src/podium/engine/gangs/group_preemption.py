"""Asks the preemption plugin to make room for a whole PodGroup, with the gate WorkloadAwarePreemption on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podium.config.points import Point
from podium.framework.profile import ProfileRuntime
from podium.framework.protocols import PodGroupPostFilterPlugin
from podium.framework.status import Status
from podium.kube import Pod
from podium.preemption.group_victims import Fits

NO_PLUGIN: Final = Status.unschedulable(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
CONSTRAINED: Final = Status.unschedulable(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


def preempt_for_group(runtime: ProfileRuntime, key: str, pods: Sequence[Pod], fits: Fits) -> Status | None:
    """Evict for the group ("namespace/name"); None where that is under way, or why it is not."""
    plugins = [each for each in runtime.at(Point.POST_FILTER) if isinstance(each, PodGroupPostFilterPlugin)]
    if not plugins:
        return NO_PLUGIN
    group = runtime.handle.cluster.objects.pod_groups.get(key)
    if group is None:
        name = key.partition("/")[2]
        return Status.error(f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found')
    if group.topology_key is not None:
        return CONSTRAINED
    return plugins[0].pod_group_post_filter(group, pods, fits)
