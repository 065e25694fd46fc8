"""Stores cache entries by profile and signature, within bounds.

The entries used longest ago are dropped when the cached arrays outgrow their share of memory.
"""

from __future__ import annotations

from collections import OrderedDict

from podium.engine.answer_cache.entry import CacheEntry, CacheMiss
from podium.engine.answer_cache.errors import UnexpectedErrors
from podium.engine.answer_cache.signatures import SignatureHistory
from podium.engine.decide import NodeSearch
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.framework.profile import ProfileRuntime
from podium.framework.status import PluginError

MOST_BYTES = 96 << 20

Key = tuple[str, bytes]
"""A profile's name, and the signature of pods."""


class AnswerCache:
    """The answers of plugins, cached from pod to pod."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, CacheEntry] = OrderedDict()
        self._history: SignatureHistory[Key] = SignatureHistory()
        self.errors = UnexpectedErrors()
        self.bytes = 0
        """About how much memory the entries take."""
        self.decisions = 0
        """How many decisions were made by them."""
        self.last: CacheEntry | None = None
        """The entry that the last of them was made by."""

    def decide(self, runtime: ProfileRuntime, cycle: Cycle, sampling: Sampling) -> int | NodeSearch | None:
        """The best row by cached answers, or why there is none; None when the pod must be decided without them."""
        pod = cycle.pod
        nodes = len(cycle.cluster.order.rows)
        if runtime.handle.nominator.node_of(pod.uid) is not None or pod.status.nominated_node_name:
            return None
        if not runtime.scores or not runtime.filters:
            return None
        if sampling.limit(nodes, runtime.profile.percentage_of_nodes_to_score) < nodes:
            return None
        key = (runtime.name, cycle.facts.signature)
        entry = self._entries.get(key)
        if entry is None:
            if not self._history.worth_an_entry(key, pod.uid):
                return None
            entry = self._add(key, CacheEntry(runtime, cycle.cluster))
        else:
            self._entries.move_to_end(key)
        try:
            answer = entry.decide(cycle, sampling.next_start % max(nodes, 1))
        except PluginError:
            self._drop(key)  # decided without the cache, it is found out which plugin fails, and said
            return None
        except Exception as error:  # a mistake of the cache: the pod is decided without it
            self._drop(key)
            self.errors.add(error, runtime.handle.report)
            return None
        if isinstance(answer, CacheMiss):
            if answer is CacheMiss.THIS_SIGNATURE:
                self._drop(key)
                self._history.not_cacheable(key, pod.uid)
            return None
        sampling.advance(nodes, nodes)
        self.decisions += 1
        self.last = entry
        return answer

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    def decided_without(self, runtime: ProfileRuntime, cycle: Cycle) -> None:
        """A signature that came once may never come again: what plugins noted of it is dropped."""
        if self._history.came_once((runtime.name, cycle.facts.signature)):
            cycle.facts.notes.clear()

    def get(self, runtime: ProfileRuntime, cycle: Cycle) -> CacheEntry | None:
        """The entry for the cycle's pod."""
        return self._entries.get((runtime.name, cycle.facts.signature))

    def drop(self, runtime: ProfileRuntime, cycle: Cycle) -> None:
        """Drop the entry for the cycle's pod, if there is one."""
        key = (runtime.name, cycle.facts.signature)
        if key in self._entries:
            self._drop(key)

    def _add(self, key: Key, entry: CacheEntry) -> CacheEntry:
        self._entries[key] = entry
        self.bytes += entry.bytes
        while self.bytes > MOST_BYTES and len(self._entries) > 1:
            self._drop(next(iter(self._entries)))
        return entry

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key)
        self.last = None
        self.bytes -= entry.bytes
        entry.release()
