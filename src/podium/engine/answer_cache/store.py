"""Which kinds of pods have their answers kept, within bounds.

A kind is what `Kept` keeps answers for: a profile and a family of pods, equal but for the names of their claims. It is
worth keeping when a second pod of it comes, or one pod for the third time: what is kept for pods that are all different
costs more than it saves. The kinds used longest ago are dropped when the kept arrays outgrow their share of memory.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from podium.config.points import Point
from podium.engine.answer_cache.entry import Kept
from podium.engine.answer_cache.filters import TurnedAway, Unkeepable
from podium.engine.decide import Search
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.framework.profile import ProfileRuntime

KEPT_BYTES = 96 << 20
REMEMBERED_KINDS = 10_000
PATIENCE = 2
"""So many times the only pod of its kind is decided the long way."""

Kind = tuple[str, bytes]


class Met(msgspec.Struct, gc=False):
    """How often a kind was met that is not kept; the first pod of it."""

    first: str
    times: int = 0
    keepable: bool = True


class AnswerCache:
    """Kept answers by kind of pod: profile and family."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Kind, Kept] = OrderedDict()
        self._met: OrderedDict[Kind, Met] = OrderedDict()
        self.bytes = 0
        """About how much memory they take."""
        self.decisions = 0
        """How many decisions were made by them."""

    def decide(self, runtime: ProfileRuntime, cycle: Cycle, sampling: Sampling) -> int | Search | None:
        """The best row by kept answers, or why there is none; None when this pod must be decided the long way."""
        pod = cycle.pod
        nodes = len(cycle.cluster.order.rows)
        if runtime.handle.nominator.node_of(pod.uid) is not None or pod.status.nominated_node_name:
            return None
        if not runtime.at(Point.SCORE) or not runtime.at(Point.FILTER):
            return None
        if sampling.limit(nodes, runtime.profile.percentage_of_nodes_to_score) < nodes:
            return None
        kind = (runtime.name, cycle.facts.signature)
        kept = self._kept.get(kind)
        if kept is None:
            if not self._worth_keeping(kind, pod.uid):
                return None
            kept = self._keep(kind, Kept(runtime, cycle.cluster))
        else:
            self._kept.move_to_end(kind)
        try:
            answer = kept.decide(cycle, sampling.next_start % max(nodes, 1))
            sampling.advance(nodes, nodes)
            self.decisions += 1
            return answer
        except TurnedAway:
            return None
        except Unkeepable:
            self._drop(kind)
            self._met_before(kind, pod.uid).keepable = False
        except Exception:
            self._drop(kind)  # a plugin failed: the long way finds out which, and says so
        return None

    def __len__(self) -> int:
        """How many kinds of pods have their answers kept."""
        return len(self._kept)

    def decided_without(self, runtime: ProfileRuntime, cycle: Cycle) -> None:
        """A kind that was met once may never come again: what plugins noted of it is dropped."""
        met = self._met.get((runtime.name, cycle.facts.signature))
        if met is not None and met.times == 1:
            cycle.facts.notes.clear()

    def get(self, runtime: ProfileRuntime, cycle: Cycle) -> Kept | None:
        """What is kept for the kind of the cycle's pod."""
        return self._kept.get((runtime.name, cycle.facts.signature))

    def _worth_keeping(self, kind: Kind, uid: str) -> bool:
        """Whether a kind has come often enough, unless its answers turned out not to be keepable."""
        met = self._met_before(kind, uid)
        met.times += 1
        return met.keepable and (met.first != uid or met.times > PATIENCE)

    def _met_before(self, kind: Kind, uid: str) -> Met:
        met = self._met.get(kind)
        if met is None:
            met = self._met[kind] = Met(uid)
            if len(self._met) > REMEMBERED_KINDS:
                self._met.popitem(last=False)
        return met

    def _keep(self, kind: Kind, kept: Kept) -> Kept:
        self._kept[kind] = kept
        self.bytes += kept.bytes
        while self.bytes > KEPT_BYTES and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return kept

    def _drop(self, kind: Kind) -> None:
        self.bytes -= self._kept.pop(kind).bytes
