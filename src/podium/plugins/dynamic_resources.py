"""DynamicResources: pods that ask for devices through resource claims.

Podium does not allocate resource claims yet, so a pod that has any is turned away with a reason that says so. To all
other pods the plugin is what it is in kube-scheduler: it has nothing to filter, scores every node 0, and when no node
fits it reports that it has no claims to give back, ahead of what preemption has to say. It reports so only if it was
asked at all: when a plugin before it ended PreFilter, it finds its notes missing, which is an error and ends the search
for room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from podium.cluster import Nodes
from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath
from podium.framework import (
    SKIP,
    Cycle,
    Diagnosis,
    Interest,
    Normalizer,
    Plugin,
    PluginError,
    PostFilterResult,
    Scope,
    Status,
)
from podium.kube import Pod

NAME = "DynamicResources"
NOT_ALLOCATED = "Podium does not allocate resource claims yet, and the pod has claims: {}"
NOTHING_TO_FREE = Status.unschedulable("no new claims to deallocate")
NOT_FOUND = "not found"


class DynamicResourcesArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    filter_timeout: Duration | None = Duration(10 * SECOND)
    """How long finding devices may take on one node; 0 is without limit."""
    binding_timeout: Duration | None = Duration(600 * SECOND)
    """How long to wait for devices to be attached."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if self.filter_timeout is not None and self.filter_timeout < 0:
            yield FieldError.invalid(path.child("filterTimeout"), self.filter_timeout, "must be zero or positive")
        if self.binding_timeout is not None and self.binding_timeout < SECOND:
            yield FieldError.invalid(path.child("bindingTimeout"), self.binding_timeout, "must be at least 1 second")


class DynamicResources(Plugin):
    name = NAME
    Args = DynamicResourcesArgs
    filter_scope = Scope.NODE
    score_scope = Scope.NODE
    sees_claims = False
    normalizer = Normalizer.DEFAULT

    def interests(self) -> Iterable[Interest]:
        """No event makes Podium allocate claims."""
        return ()

    def pre_enqueue(self, _pod: Pod) -> Status | None:
        return None

    def pre_filter(self, cycle: Cycle) -> Status:
        cycle.data[NAME] = True
        claims = cycle.pod.spec.resource_claims
        if claims:
            return Status.unresolvable(NOT_ALLOCATED.format(", ".join(claim.name for claim in claims)))
        return SKIP

    def filter(self, cycle: Cycle, _nodes: Nodes) -> None:
        _check_notes(cycle)

    def post_filter(self, cycle: Cycle, _diagnosis: Diagnosis) -> PostFilterResult:
        return PostFilterResult(NOTHING_TO_FREE if NAME in cycle.data else Status.error(NOT_FOUND))

    def score(self, cycle: Cycle, _nodes: Nodes) -> int:
        _check_notes(cycle)
        return 0

    def reserve(self, cycle: Cycle, _node_name: str) -> Status | None:
        return None if NAME in cycle.data else Status.error(NOT_FOUND)

    def unreserve(self, _cycle: Cycle, _node_name: str) -> None:
        pass

    def pre_bind_preflight(self, cycle: Cycle, _node_name: str) -> Status:
        return SKIP if NAME in cycle.data else Status.error(NOT_FOUND)

    def pre_bind(self, _cycle: Cycle, _node_name: str) -> None:
        pass


def _check_notes(cycle: Cycle) -> None:
    """PreFilter must have been here; a profile that disables it there cannot use the plugin elsewhere."""
    if NAME not in cycle.data:
        raise PluginError(NOT_FOUND)
