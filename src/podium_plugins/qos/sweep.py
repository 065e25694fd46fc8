"""Splits the run time of replicas that must run together: effective while enough of them do, discarded otherwise."""

from __future__ import annotations

from collections.abc import Iterable


def split_by_quorum(runs: Iterable[tuple[float, float]], quorum: int) -> tuple[float, float]:
    """(effective, discarded) of runs given by start and end: a second of each run counts as effective while at least
    `quorum` of them overlap.

    >>> split_by_quorum([(0, 10), (4, 10)], 2)
    (12.0, 4.0)
    """
    steps: list[tuple[float, int]] = []
    for start, end in runs:
        if end > start:
            steps += ((start, 1), (end, -1))
    steps.sort()
    effective = discarded = 0.0
    online, since = 0, 0.0
    for at, change in steps:
        span = (at - since) * online
        if online >= quorum:
            effective += span
        else:
            discarded += span
        online, since = online + change, at
    return effective, discarded
