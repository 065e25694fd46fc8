"""Scores placements by how many members of the PodGroup would have a node (PodGroupPodsCount).

    score = 100 × members with a node / the most that any placement gives one

Members that have a node already count, too, so that small differences in number stay small in score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from podium.cluster.pod_groups import PodGroupStates
from podium.framework import MAX_SCORE, Handle, Plugin, Status
from podium.framework.protocols import TriedPlacement

NAME: Final = "PodGroupPodsCount"
NO_MEMBER: Final = "no pods from pod group are assigned to any of the candidate placements"


class PodGroupPodsCount(Plugin):
    name = NAME
    trusted = True

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._states = PodGroupStates.of(handle.cluster)

    def score_placements(self, key: str, tried: Sequence[TriedPlacement]) -> Sequence[int] | Status:
        state = self._states.get(key)
        if state is None:
            return Status.error(f"pod group state not found for pod group {key}")
        counts = [state.scheduled + len(each.pods) for each in tried]
        most = max(counts, default=0)
        return [count * MAX_SCORE // most for count in counts] if most else Status.error(NO_MEMBER)
