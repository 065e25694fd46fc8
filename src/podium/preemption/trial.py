"""Takes pods off their nodes in a dry run, and says whether the preemptor fits then."""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster import PlacedPod
from podium.framework.cycle import Cycle
from podium.framework.notes import SharedNoteError
from podium.framework.profile import ProfileRuntime
from podium.framework.status import PluginError, Status


class Trial:
    """The cluster with pods taken off, and a copy of the cycle's notes that has followed; `undo` puts all back.

    To be used inside of `cluster.dry_run()`.
    """

    def __init__(self, runtime: ProfileRuntime, cycle: Cycle) -> None:
        self._runtime = runtime
        self._cycle = cycle.clone()
        self._off: dict[str, PlacedPod] = {}
        self._order: dict[int, dict[str, PlacedPod]] = {}

    def take_off(self, placed: PlacedPod) -> None:
        cluster = self._cycle.cluster
        if placed.row not in self._order:
            self._order[placed.row] = dict(cluster.pods_on[placed.row])
        cluster.take_off(placed)
        cluster.ports.hide(placed.facts.ports, placed.row)
        self._off[placed.pod.uid] = placed
        self._runtime.remove_pod(self._cycle, placed)

    def put_back(self, placed: PlacedPod) -> None:
        cluster = self._cycle.cluster
        cluster.put_on(placed)
        cluster.ports.show(placed.facts.ports, placed.row)
        del self._off[placed.pod.uid]
        self._runtime.add_pod(self._cycle, placed)

    def leave_off(self, pods: Iterable[PlacedPod]) -> None:
        """Have these pods off, and all others where they belong."""
        wanted = {placed.pod.uid: placed for placed in pods}
        for placed in [placed for uid, placed in self._off.items() if uid not in wanted]:
            self.put_back(placed)
        for placed in [placed for uid, placed in wanted.items() if uid not in self._off]:
            self.take_off(placed)

    def refusal(self, row: int, *, only_moving: bool = False) -> Status | None:
        """Why the preemptor does not fit on a row as things are; raises PluginError where a filter fails."""
        return self._runtime.run_filters_with_nominated(self._cycle, row, only_moving=only_moving)

    def fits(self, row: int, *, only_moving: bool = False) -> bool:
        """Whether the preemptor fits on a row as things are; where a filter fails, it is not said to."""
        try:
            return self.refusal(row, only_moving=only_moving) is None
        except SharedNoteError:
            raise  # what was found so far may rest on the note, too
        except PluginError:
            return False

    def undo(self) -> None:
        cluster = self._cycle.cluster
        cluster.ports.show_all()
        for placed in self._off.values():
            cluster.put_on(placed)
        for row, order in self._order.items():
            cluster.pods_on[row] = order  # the order in which pods came ranks those that have not started
