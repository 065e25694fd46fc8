"""Lets someone outside the engine choose among the nodes that a pod fits.

`open_decision` runs the filters; a pod that fits nowhere is dealt with there, as in any cycle. `close_decision` places
the pod on the row that was chosen. Scores aren't asked for.
"""

from __future__ import annotations

from typing import NamedTuple

from podium.cluster import Rows
from podium.engine.decide import NO_NODES, find_feasible, make_room
from podium.engine.scheduler import CLEAR, Scheduler
from podium.framework.cycle import Cycle
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import PluginError, Status


class OpenDecision(NamedTuple):
    """A pod that waits for a choice."""

    runtime: ProfileRuntime
    cycle: Cycle
    queued: QueuedPod
    rows: Rows
    """Where it fits, in visiting order."""


def open_decision(scheduler: Scheduler, queued: QueuedPod) -> OpenDecision | None:
    """Where a pod from the queue fits. None: it fits nowhere, or isn't placed one by one, and has been dealt with."""
    pod = queued.pod
    runtime = scheduler.profiles.get(pod.spec.scheduler_name)
    if runtime is None or runtime.gang_plugins or pod.spec.scheduling_group is not None:
        scheduler.schedule(queued)
        return None
    if scheduler.to_be_skipped(pod):
        scheduler.queue.done(pod.uid)
        return None
    cycle = Cycle(pod, scheduler.cluster)
    try:
        if not len(scheduler.cluster.order.rows):
            scheduler.fail(queued, Status.unresolvable(NO_NODES), CLEAR)
            return None
        search = find_feasible(runtime, cycle, scheduler.sampling)
        if len(search.feasible):
            return OpenDecision(runtime, cycle, queued, search.feasible)
        diagnosis = search.diagnosis()
        nomination = make_room(runtime, cycle, diagnosis)
        scheduler.fail(queued, Status.unschedulable(diagnosis.message), nomination, diagnosis)
    except PluginError as error:
        scheduler.fail(queued, Status.error(str(error)), CLEAR)
    return None


def close_decision(scheduler: Scheduler, decision: OpenDecision, row: int) -> None:
    """Place the pod on one of its rows, as the engine would."""
    runtime, cycle, queued, _ = decision
    name = scheduler.cluster.names[row]
    waits = scheduler.place(runtime, cycle, name)
    if isinstance(waits, Status):
        scheduler.take_back(runtime, cycle, name)
        scheduler.fail_on_node(queued, waits)
    else:
        scheduler.start_binding(runtime, cycle, queued, name, waits)
