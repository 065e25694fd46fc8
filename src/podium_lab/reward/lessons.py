"""Reads what a pod's present state teaches about its node: a reward from 0 to 1, or nothing.

    phase Failed, Unknown                0
    phase Running                        by its containers, in order, beginning with 1:
        runs, and has not ended before       changes nothing
        has ended for the first time         ½
        has ended once more                  ½ if this run was a lasting one, else 0
        waits, or runs after it had ended    nothing is learnt, unless a later one has ended
    any other phase                      nothing

So a healthy pod speaks for its node, a crash against it, and what comes of the restart says neither. A container that
ended with exit code 0 has done its work: it changes nothing. How long a run lasted is from when it started to when it
finished.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.framework.pod_outcomes import Ended, PodOutcome
from podium.kube.meta import parse_time

TYPE_LABELS = ("podtype", "app", "name")
SUCCESS, DOUBT, FAILURE = 1.0, 0.5, 0.0


def type_of(labels: Mapping[str, str], name: str) -> str:
    """What kind of pod it is: the first of three labels that it has, else its own name; empty: none.

    >>> type_of({"app": "web", "name": "x"}, "web-1"), type_of({}, "web-1"), type_of({"app": ""}, "web-1")
    ('web', 'web-1', '')
    """
    return next((labels[label] for label in TYPE_LABELS if label in labels), name)


def lesson(pod: PodOutcome, lasting_run: float) -> float | None:
    """The reward that this state of the pod gives its node; None where it teaches nothing."""
    if pod.status.phase in ("Failed", "Unknown"):
        return FAILURE
    if pod.status.phase != "Running":
        return None
    teaches, reward = True, SUCCESS
    for container in pod.status.container_statuses:
        ended, before = container.state.terminated, container.last_state.terminated
        if ended is not None:
            if ended.exit_code != 0:
                teaches, reward = True, DOUBT if before is None or _seconds(ended) > lasting_run else FAILURE
        elif before is not None or container.state.running is None:
            teaches = False
    return reward if teaches else None


def _seconds(run: Ended) -> float:
    """How long it lasted; not at all where that is not written down."""
    try:
        return parse_time(run.finished_at or "") - parse_time(run.started_at or "")
    except ValueError:
        return 0.0
