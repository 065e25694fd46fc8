"""Logs the answers given for a pod at level debug: a line for each node, with its verdict or its points.

Of a large cluster the first nodes are shown; level trace shows all.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from podium.extender.plugin_subset import FilteredNodes
from podium.extender.score_scaling import Points
from podium.kube import Pod
from podium.serving.log import LOG, TRACE

MOST_NODES: Final = 100


def logs_answers() -> bool:
    return LOG.isEnabledFor(logging.DEBUG)


def log_verdicts(pod: Pod, names: Sequence[str], filtered: FilteredNodes) -> None:
    if not logs_answers():
        return
    for position, name in enumerate(names[: _most()]):
        status = filtered.refused.get(position)
        verdict = "passes" if status is None else f"is refused: {status.message}"
        LOG.debug("filter: pod %s: node %s %s", pod.key, name, verdict)
    _log_rest("filter", pod, len(names))


def log_points(pod: Pod, names: Sequence[str], points: Points) -> None:
    if not logs_answers():
        return
    for name, number in zip(names[: _most()], points.tolist(), strict=False):
        LOG.debug("prioritize: pod %s: node %s gets %d points", pod.key, name, number)
    _log_rest("prioritize", pod, len(names))


def _most() -> int | None:
    return None if LOG.isEnabledFor(TRACE) else MOST_NODES


def _log_rest(verb: str, pod: Pod, nodes: int) -> None:
    most = _most()
    if most is not None and nodes > most:
        LOG.debug("%s: pod %s: and %d more nodes, which level trace shows", verb, pod.key, nodes - most)
