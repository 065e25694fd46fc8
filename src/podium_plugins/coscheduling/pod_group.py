"""Reads PodGroups (scheduling.x-k8s.io/v1alpha1) and finds the group that a pod belongs to.

A group that cannot be read has no gang effect: its pods are scheduled one by one, and the problem is reported.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from podium.kube import POD_GROUP_LABEL, ObjectMeta, Pod, Resources, parse_time

API_VERSION: Final = "scheduling.x-k8s.io/v1alpha1"
RESOURCE: Final = "podgroups.scheduling.x-k8s.io"
TOPOLOGY_KEY: Final = "podium.dev/topology-key"
"""The annotation of a group that names a node label: all members go to nodes with one value of it."""
TOPOLOGY_MODE: Final = "podium.dev/topology-mode"
"""The annotation that says whether one value is a must (hard) or a wish (soft)."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    min_member: int | msgspec.UnsetType = msgspec.UNSET
    min_resources: Resources | None = None
    schedule_timeout_seconds: int | None = None


class _PodGroup(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


class GroupRules(msgspec.Struct, frozen=True):
    """What scheduling reads of a PodGroup."""

    min_member: int
    created: float | None
    """Seconds since the epoch."""
    min_resources: Resources | None = None
    timeout: int | None = None
    topology_key: str = ""
    topology_mode: Literal["hard", "soft"] = "hard"


def group_key(pod: Pod) -> str | None:
    """The "namespace/name" of the pod's group; None where it has none."""
    name = pod.metadata.labels.get(POD_GROUP_LABEL)
    return f"{pod.namespace}/{name}" if name else None


def read_group(item: Any) -> GroupRules | str:
    """A PodGroup from the API's data, or what is wrong with it."""
    try:
        group = msgspec.convert(item, _PodGroup)
        created = group.metadata.creation_timestamp
        at = None if created is None else parse_time(created)
    except (msgspec.ValidationError, ValueError) as error:
        return str(error)
    given = group.spec.min_member
    minimum = 0 if given is msgspec.UNSET else given
    if given is not msgspec.UNSET and given < 1:
        return f"spec.minMember must be at least 1, got {minimum}"
    annotations = group.metadata.annotations
    key, mode = annotations.get(TOPOLOGY_KEY, ""), annotations.get(TOPOLOGY_MODE, "hard")
    if mode not in ("hard", "soft"):
        return f'annotation {TOPOLOGY_MODE} must be "hard" or "soft", got "{mode}"'
    return GroupRules(
        min_member=minimum,
        created=at,
        min_resources=group.spec.min_resources,
        timeout=group.spec.schedule_timeout_seconds,
        topology_key=key,
        topology_mode="soft" if mode == "soft" else "hard",
    )
