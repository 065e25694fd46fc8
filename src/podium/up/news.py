"""What happens to pods, as the API server's store sees it: how many there are of each kind, and what was decided last.

A pod that gets a node is a decision; one whose condition says that no node takes it is a decision, too, told again only
when the reason changes. The store tells of every write at once, so nothing is asked for and nothing is missed.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from podium.apiserver.kinds import POD
from podium.apiserver.store import Change, Store, Stored

REMEMBERED: Final = 200


class Decision(NamedTuple):
    """`node` is empty where no node was found; then `why` says so in kube-scheduler's words."""

    at: float
    pod: str
    node: str
    why: str = ""


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Known(NamedTuple):
    key: str
    node: str
    phase: str
    refusal: str


_NOBODY: Final = _Known("", "", "", "")
_decoder: Final = msgspec.json.Decoder(_Pod)


class News:
    """`now` is the time that decisions are marked with; `tell` is called with each of them."""

    def __init__(self, store: Store, now: Callable[[], float], tell: Callable[[Decision], None]) -> None:
        self.decisions: deque[Decision] = deque(maxlen=REMEMBERED)
        self.phases: Counter[str] = Counter()
        self.placed = 0
        """Pods that got a node since the start."""
        self.first_placed: float | None = None
        self._now = now
        self._tell = tell
        self._pods: dict[str, _Known] = {}
        for stored in store.items(POD):
            self._take(stored.uid, _known(stored))
        self.stop = store.listen(self._changed, POD)

    @property
    def undecided(self) -> int:
        """Pods without a node that nobody has said anything about yet."""
        return sum(not each.node and not each.refusal and each.phase == "Pending" for each in self._pods.values())

    @property
    def pods(self) -> int:
        return len(self._pods)

    def refused(self) -> list[Decision]:
        """The last word on each pod that no node takes, by name."""
        waiting = (each for each in self._pods.values() if each.refusal and not each.node)
        return sorted(Decision(0.0, each.key, "", each.refusal) for each in waiting)

    def _changed(self, change: Change) -> None:
        stored = change.new
        if change.type == "DELETED":
            self.phases[self._pods.pop(stored.uid, _NOBODY).phase] -= 1
            return
        known = _known(stored)
        before = self._take(stored.uid, known)
        if known.node and not before.node and change.type == "MODIFIED":
            self.placed += 1
            if self.first_placed is None:
                self.first_placed = self._now()
            self._decided(Decision(self._now(), known.key, known.node))
        elif known.refusal and not known.node and known.refusal != before.refusal:
            self._decided(Decision(self._now(), known.key, "", known.refusal))

    def _take(self, uid: str, known: _Known) -> _Known:
        before = self._pods.get(uid, _NOBODY)
        self._pods[uid] = known
        self.phases[before.phase] -= before is not _NOBODY
        self.phases[known.phase] += 1
        return before

    def _decided(self, decision: Decision) -> None:
        self.decisions.append(decision)
        self._tell(decision)


def _known(stored: Stored) -> _Known:
    pod = _decoder.decode(stored.raw)
    said = (each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False")
    refusal = next((each.message for each in said if each.reason == "Unschedulable"), "")
    return _Known(f"{stored.namespace}/{stored.name}", pod.spec.node_name, pod.status.phase, refusal)
