"""Checks what must hold for gangs: none is half-bound, and none keeps a node that it does not start on.

    no gang is half-bound    a member is bound only while minMember of them have a node, as far as the sender can know
    no reservation is leaked after the faults nothing is assumed or held at Permit for a member, and the plugin's
                             account of members is the API server's

Members that have just gone still count for the first: the sender may have decided for them before it heard of that. So
no gang is half-bound beyond its time-out: what waits at Permit is given up then, and what is bound was bound whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.engine.scheduler import Scheduler
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium.plugins.coscheduling import Coscheduling
from podium.plugins.coscheduling.pod_group import RESOURCE, group_key

GANGS_WHOLE = "no gang is half-bound"
NO_RESERVATION_LEAKED = "no reservation is leaked"

JUST_GONE = 30.0
"""Seconds for which a member that is gone may still count."""

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Coscheduling}]
      disabled: [{name: PrioritySort}]
"""


class GoneMembers:
    """The members of gangs that are gone, and when they went."""

    def __init__(self) -> None:
        self._gone: list[tuple[float, str, str]] = []

    def gone(self, pod: JsonObject, now: float) -> None:
        name = pod["metadata"].get("labels", {}).get("scheduling.x-k8s.io/pod-group")
        if name:
            self._gone.append((now, f"{pod['metadata']['namespace']}/{name}", pod["metadata"]["uid"]))

    def half_bound(self, engine: Scheduler, pod: Pod, now: float) -> str | None:
        """What is wrong with binding this pod now, if anything is."""
        key = group_key(pod)
        group = None if key is None else engine.cluster.objects.custom_store(RESOURCE).get(key)
        if group is None:
            return None
        there = {uid for uid, placed in engine.cluster.pods.items() if group_key(placed.pod) == key}
        there |= {uid for at, gone_key, uid in self._gone if gone_key == key and at > now - JUST_GONE}
        minimum = group["spec"]["minMember"]
        if len(there) >= minimum:
            return None
        return f"{pod.key} is bound while {len(there)} of {minimum} members of {key} have a node"


def leaked_reservations(bound: Iterable[Pod], engine: Scheduler) -> Iterator[str]:
    """What is held for members of gangs that have no node; `bound` are the pods that have one."""
    for placed in engine.cluster.pods.values():
        if placed.assumed and group_key(placed.pod):
            yield f"member {placed.pod.key} is still assumed to be on {engine.cluster.names[placed.row]}"
    for waiting in engine.waiting:
        if group_key(waiting.pod):
            yield f"member {waiting.pod.key} still waits at Permit"
    for plugin in _coscheduling(engine):
        for key, uids in _by_group(bound).items():
            record = plugin.record(key)
            counted = set() if record is None else set(record.placed)
            if counted != uids:
                yield f"{len(counted)} members of {key} count as placed, not {len(uids)}"


def _coscheduling(engine: Scheduler) -> Iterator[Coscheduling]:
    for runtime in engine.profiles.values():
        for plugin in runtime.plugins.values():
            if isinstance(plugin, Coscheduling):
                yield plugin


def _by_group(pods: Iterable[Pod]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for pod in pods:
        key = group_key(pod)
        if key is not None:
            found.setdefault(key, set()).add(pod.uid)
    return found
