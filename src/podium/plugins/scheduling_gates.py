"""Keeps a pod with scheduling gates out of the queue until all of them are removed (SchedulingGates)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from podium.framework import Action, Interest, Plugin, Resource, Status
from podium.kube import Pod

NAME = "SchedulingGates"
WAITING = "waiting for scheduling gates: [{}]"


class SchedulingGates(Plugin):
    name = NAME
    trusted = True

    def interests(self) -> Iterable[Interest]:
        return [Interest(Resource.POD, Action.UPDATE_POD_GATES_ELIMINATED, _is_same_pod, by_signature=True)]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        gates = pod.spec.scheduling_gates
        return Status.unresolvable(WAITING.format(" ".join(gate.name for gate in gates))) if gates else None


def _is_same_pod(pod: Pod, _before: Any, after: Pod) -> bool:
    return after.uid == pod.uid
