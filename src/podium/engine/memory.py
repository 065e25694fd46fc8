"""Which kinds of pods have their answers kept, within bounds.

A kind is what `Kept` keeps answers for: a profile and a family of pods, equal but for the names of their claims. It is
worth keeping when it comes a second time: pods that are all different would only fill memory. The kinds used longest
ago are dropped when the kept arrays outgrow their share of memory.
"""

from __future__ import annotations

from collections import OrderedDict

from podium.engine.decide import Search
from podium.engine.kept import Kept
from podium.engine.kept_filters import TurnedAway, Unkeepable
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.framework.profile import ProfileRuntime

KEPT_BYTES = 96 << 20
REMEMBERED_KINDS = 10_000

Kind = tuple[str, bytes]


class Memory:
    """Kept answers by kind of pod: profile and family."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Kind, Kept] = OrderedDict()
        self._seen: OrderedDict[Kind, bool] = OrderedDict()
        self.bytes = 0
        """About how much memory they take."""
        self.answered = 0
        """How many decisions were made by them."""

    def decide(self, runtime: ProfileRuntime, cycle: Cycle, sampling: Sampling) -> int | Search | None:
        """The best row by kept answers, or why there is none; None when this pod must be decided the long way."""
        pod = cycle.pod
        nodes = len(cycle.cluster.order.rows)
        if runtime.handle.nominator.node_of(pod.uid) is not None or pod.status.nominated_node_name:
            return None
        if not runtime.at("score") or not runtime.at("filter"):
            return None
        if sampling.limit(nodes, runtime.profile.percentage_of_nodes_to_score) < nodes:
            return None
        kind = (runtime.name, cycle.facts.family)
        kept = self._kept.get(kind)
        if kept is None:
            if not self._worth_keeping(kind):
                return None
            kept = self._keep(kind, Kept(runtime, cycle.cluster))
        else:
            self._kept.move_to_end(kind)
        try:
            answer = kept.decide(cycle, sampling.next_start % max(nodes, 1))
            sampling.advance(nodes, nodes)
            self.answered += 1
            return answer
        except TurnedAway:
            return None
        except Unkeepable:
            self._drop(kind)
            self._seen[kind] = False
        except Exception:
            self._drop(kind)  # a plugin failed: the long way finds out which, and says so
        return None

    def __len__(self) -> int:
        """How many kinds of pods have their answers kept."""
        return len(self._kept)

    def get(self, runtime: ProfileRuntime, cycle: Cycle) -> Kept | None:
        """What is kept for the kind of the cycle's pod."""
        return self._kept.get((runtime.name, cycle.facts.family))

    def _worth_keeping(self, kind: Kind) -> bool:
        """True the second time a kind is met, unless its answers turned out not to be keepable."""
        keepable = self._seen.get(kind)
        if keepable is None:
            self._seen[kind] = True
            if len(self._seen) > REMEMBERED_KINDS:
                self._seen.popitem(last=False)
            return False
        return keepable

    def _keep(self, kind: Kind, kept: Kept) -> Kept:
        self._kept[kind] = kept
        self.bytes += kept.bytes
        while self.bytes > KEPT_BYTES and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return kept

    def _drop(self, kind: Kind) -> None:
        self.bytes -= self._kept.pop(kind).bytes
