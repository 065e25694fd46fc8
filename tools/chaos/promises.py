"""Checks what must hold where pods are evicted by QoS: preemption does not thrash.

    evictions per pod are bounded    pods that come back under one name are evicted no more often than the minimum
                                     running time allows, counted from the first binding of that name

A pod that is evicted comes back, as its controller would have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from podium.kube.json_object import JsonObject
from podium.kube.meta import parse_time
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.store.collection import ObjectChange
from tools.chaos.machines import kind_of

EVICTIONS_BOUNDED: Final = "evictions per pod are bounded"
MINIMUM: Final = 5.0
"""The minimum running time, in seconds."""
ROUNDING: Final = 1.0
"""Seconds that times of the API may be off."""

CONFIG: Final = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {{enabled: [{{name: QosAware}}], disabled: [{{name: "*"}}]}}
    postFilter: {{enabled: [{{name: QosAware}}], disabled: [{{name: "*"}}]}}
    reserve: {{enabled: [{{name: QosAware}}]}}
    preBind: {{enabled: [{{name: QosAware}}]}}
    postBind: {{enabled: [{{name: QosAware}}]}}
  pluginConfig:
  - name: QosAware
    args: {{safetyMargin: 5s, minimumRunningTime: {MINIMUM:g}s}}
"""


class EvictionBound:
    """Counts the evictions of each name, at the API server."""

    def __init__(self, api: EmbeddedApi, checked: Callable[[str], None], violated: Callable[[str, str], None]) -> None:
        self._api = api
        self._checked = checked
        self._violated = violated
        self._first: dict[str, float] = {}
        """By name: when a pod of that name was first bound."""
        self._evicted: dict[str, set[str]] = {}
        api.store.listen(self._pod_changed, kind_of(api, "v1", "Pod"))

    def _pod_changed(self, change: ObjectChange) -> None:
        if change.type == "DELETED":
            return
        pod = change.new.decode()
        name, uid = change.new.name, change.new.uid
        bound = _since(pod, "PodScheduled")
        if pod["spec"].get("nodeName") and bound is not None:
            self._first.setdefault(name, bound)
        evicted = _since(pod, "DisruptionTarget")
        gone = self._evicted.setdefault(name, set())
        if evicted is None or uid in gone or name not in self._first:
            return
        gone.add(uid)
        self._checked(EVICTIONS_BOUNDED)
        most = (evicted - self._first[name] + ROUNDING * len(gone)) / MINIMUM
        if len(gone) > most:
            self._violated(
                EVICTIONS_BOUNDED,
                f"{name} is evicted for the {len(gone)}. time, {evicted - self._first[name]:g} s after it first ran",
            )


def _since(pod: JsonObject, kind: str) -> float | None:
    for each in pod.get("status", {}).get("conditions", ()):
        if each["type"] == kind and each["status"] == "True" and each.get("lastTransitionTime"):
            return parse_time(each["lastTransitionTime"])
    return None
