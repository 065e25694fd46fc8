"""Remembers why gangs did not fit, so that trying one again costs nothing while nothing has changed.

A failure holds while no node, no placed pod and no nomination has changed (by cursors on the journals), and no plugin
that filters says that its answer may be another (by watermarks, as in the answer cache).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from podium.cluster import Cluster
from podium.config.points import Point
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis
from podium.framework.profile import ProfileRuntime
from podium.framework.status import PluginError, Status
from podium.framework.watermarks import Watermarks
from podium.kube import Pod

MOST_GANGS = 1000

Reason = tuple[Status, Diagnosis | None]
"""Why a member failed."""


class FailedGangs:
    """The gangs that failed last, by profile and name."""

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], _GangFailure] = OrderedDict()

    def remember(
        self, runtime: ProfileRuntime, key: str, cycles: Sequence[Cycle], reasons: Mapping[str, Reason]
    ) -> None:
        """Note why each member failed, by uid; unless a plugin cannot tell when its answer changes."""
        failure = _GangFailure(runtime, cycles, reasons)
        if failure.tellable:
            self._failures[runtime.name, key] = failure
            if len(self._failures) > MOST_GANGS:
                self._failures.popitem(last=False)

    def reason(self, runtime: ProfileRuntime, key: str, pod: Pod) -> Reason | None:
        """Why the pod would fail again with its gang; None where that is not known, or no longer."""
        failure = self._failures.get((runtime.name, key))
        if failure is None:
            return None
        if failure.is_fresh(Cycle(pod, runtime.handle.cluster)):
            return failure.reasons.get(pod.uid)
        del self._failures[runtime.name, key]
        return None

    def forget(self, runtime: ProfileRuntime, key: str) -> None:
        self._failures.pop((runtime.name, key), None)


class _GangFailure:
    """Why the members failed, and the state of things then."""

    __slots__ = ("_nominations", "_rows", "_watermarks", "reasons", "tellable")

    def __init__(self, runtime: ProfileRuntime, cycles: Sequence[Cycle], reasons: Mapping[str, Reason]) -> None:
        cluster: Cluster = runtime.handle.cluster
        self.reasons = reasons
        self._rows = cluster.row_cursor()
        self._nominations = runtime.handle.nominator.changes.cursor()
        self._rows.read()
        self._nominations.read()
        filtering = dict.fromkeys((*runtime.at(Point.PRE_FILTER), *runtime.at(Point.FILTER)))
        self._watermarks: dict[bytes, Watermarks] = {}
        self.tellable = True
        for cycle in cycles:
            if cycle.facts.claims:  # members of one signature may have claims of their own
                self.tellable = False
            elif cycle.facts.signature not in self._watermarks:
                watermarks = self._watermarks[cycle.facts.signature] = Watermarks(filtering)
                try:
                    watermarks.moved(cycle)
                except PluginError:
                    self.tellable = False
                self.tellable = self.tellable and watermarks.tellable

    def is_fresh(self, cycle: Cycle) -> bool:
        watermarks = self._watermarks.get(cycle.facts.signature)
        if watermarks is None or not self._rows.at_end or not self._nominations.at_end:
            return False
        try:
            return not watermarks.moved(cycle)
        except PluginError:
            return False
