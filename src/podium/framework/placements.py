"""Defines a placement: the nodes that all members of a PodGroup are tried on, and who makes and scores placements.

With the gate TopologyAwareWorkloadScheduling a group is tried on one placement after another, and goes to the best of
those that take it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from podium.cluster import Rows
from podium.framework.status import Status
from podium.kube import Pod, PodGroup


class Placement(NamedTuple):
    """Some nodes by their rows, in visiting order; `name` is what they have in common."""

    name: str
    rows: Rows


class TriedPlacement(NamedTuple):
    """A placement that takes the group, with the members that would go there."""

    placement: Placement
    pods: Sequence[Pod]


@runtime_checkable
class PlacementGeneratePlugin(Protocol):
    name: str

    def generate_placements(self, key: str, group: PodGroup | None, rows: Rows, /) -> Sequence[Placement] | Status:
        """The placements to try for the group ("namespace/name"), made of these rows; or why there can be none."""


@runtime_checkable
class PlacementScorePlugin(Protocol):
    name: str

    def score_placements(self, key: str, tried: Sequence[TriedPlacement], /) -> Sequence[int] | Status:
        """A score for each, 0–100, more is better; or what went wrong."""
