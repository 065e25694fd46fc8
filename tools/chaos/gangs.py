"""Checks what must hold for gangs: none is half-bound, and none keeps a node that it does not start on.

    no gang is half-bound    binding a member begins only while minMember of them have a node in the scheduler's cluster
    no reservation is leaked after the faults nothing is assumed or held at Permit for a member, and the plugin's
                             account of members is the API server's

So no gang is half-bound beyond its time-out: what waits at Permit is given up then, and what is bound was bound whole,
as far as the scheduler could know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.engine.scheduler import Scheduler
from podium.kube import Pod
from podium_plugins.coscheduling import Coscheduling
from podium_plugins.coscheduling.pod_group import RESOURCE, group_key

GANGS_WHOLE = "no gang is half-bound"
NO_RESERVATION_LEAKED = "no reservation is leaked"

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Coscheduling}]
      disabled: [{name: PrioritySort}]
"""


def half_bound(engine: Scheduler, pod: Pod) -> str | None:
    """What is wrong with starting to bind this pod now, if anything is."""
    key = group_key(pod)
    group = None if key is None else engine.cluster.objects.custom_store(RESOURCE).get(key)
    if group is None:
        return None
    there = sum(group_key(placed.pod) == key for placed in engine.cluster.pods.values())
    minimum = group["spec"]["minMember"]
    return None if there >= minimum else f"{pod.key} is bound while {there} of {minimum} members of {key} have a node"


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
