"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes only where the node says it has it.

What a pod needs is read from its spec: restarting all containers when one exits, user namespaces together with the host
network, and from 1.37 on options of bind mounts. Pods that need none of these are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np

from podium.cluster import Nodes
from podium.framework import (
    SKIP,
    Action,
    Cycle,
    DependsOn,
    Interest,
    NodePart,
    Plugin,
    PluginError,
    Resource,
    Status,
    Verdict,
)
from podium.kube import Node, Pod

NAME = "NodeDeclaredFeatures"
PRE_FILTER = f"PreFilter{NAME}"
MISSING = Status.unresolvable("node(s) didn't match Pod's required features")

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_WITH_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


class NodeDeclaredFeatures(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def interests(self) -> Iterable[Interest]:
        if not self.handle.rules.declared_features:
            return []
        return [
            Interest(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
                _declares_differently,
                by_signature=True,
            ),
            Interest(Resource.POD, Action.UPDATE, self._needs_differently, by_signature=True),
        ]

    def pre_filter(self, cycle: Cycle) -> Status | None:
        needed = self._needed(cycle.pod)
        if not needed:
            return SKIP
        cycle.data[PRE_FILTER] = needed
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        if not self.handle.rules.declared_features:
            return None
        needed: frozenset[str] | None = cycle.data.get(PRE_FILTER)
        if needed is None:
            raise PluginError(f'error reading "{PRE_FILTER}" from cycle-state: not found')
        missing = nodes.ask_features(lambda declared: not needed <= declared, np.bool_)
        return Verdict.reject(missing, MISSING)

    def _needed(self, pod: Pod) -> frozenset[str]:
        if not self.handle.rules.declared_features:
            return frozenset()
        needed = required_features(pod)
        return needed if self.handle.rules.bind_mount_options else needed - {BIND_MOUNT_OPTIONS}

    def _needs_differently(self, pod: Pod, before: Pod, after: Pod) -> bool:
        return after.uid == pod.uid and self._needed(before) != self._needed(after)


def required_features(pod: Pod) -> frozenset[str]:
    """The kubelet features without which the pod cannot run as specified."""
    spec = pod.spec
    needed = set()
    rules = chain.from_iterable(c.restart_policy_rules for c in (*spec.containers, *spec.init_containers))
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_WITH_HOST_NETWORK)
    mounts = chain.from_iterable(c.volume_mounts for c in (*spec.containers, *spec.init_containers))
    if any(mount.bind_mount_options for mount in mounts):
        needed.add(BIND_MOUNT_OPTIONS)
    return frozenset(needed)


def _declares_differently(_pod: Pod, before: Node | None, after: Node) -> bool:
    return before is None or before.status.declared_features != after.status.declared_features
