"""Caches answers of plugins about all nodes, so that a request costs a look into an array.

This is the row-local form of the engine's answer cache: for plugins whose answer about a node depends on that node's
row alone (`depends_on` with a `node` below ANYTHING) and on their answer keys (load that is measured, what was learnt).
While the keys stand, plugins are asked about changed rows only. The entries used longest ago are dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.engine.answer_cache.changed_rows import Numbers, RowAnswers, StatusOf, read_changes
from podium.engine.answer_cache.store import SignatureHistory, UnexpectedErrors
from podium.framework import Cycle, NodePart, PluginError
from podium.framework.answer_keys import AnswerKeys, Dependence
from podium.framework.profile import ProfileRuntime

MOST_ENTRIES = 64

Ask = Callable[[Cycle, Nodes], tuple[Numbers, StatusOf]]
"""A number for each node, the caller's own, and what the numbers stand for."""


class _Entry:
    """The answers for one signature, and how far they are fresh."""

    __slots__ = ("answers", "cursor", "keys")

    def __init__(self, cluster: Cluster, dependences: Sequence[Dependence]) -> None:
        self.answers = RowAnswers()
        self.cursor = cluster.row_cursor()
        self.keys = AnswerKeys(dependences)


class RowAnswerCache:
    """The answers of some plugins together, by signature of pods."""

    def __init__(self, runtime: ProfileRuntime, plugins: Sequence[Any], ask: Ask, errors: UnexpectedErrors) -> None:
        furthest = max((plugin.depends_on.node for plugin in plugins), default=NodePart.ANYTHING)
        self.possible = furthest < NodePart.ANYTHING
        self._pods = furthest > NodePart.OBJECT
        self._claims = any(plugin.depends_on.claims for plugin in plugins)
        self._dependences = [runtime.dependences[plugin] for plugin in plugins]
        self._cluster = runtime.handle.cluster
        self._ask = ask
        self._errors = errors
        self._report = runtime.handle.report
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._history: SignatureHistory[bytes] = SignatureHistory()

    def of(self, cycle: Cycle) -> RowAnswers | None:
        """The answers for pods like the cycle's, up to date; None where that is not worth it, or a plugin fails."""
        if self._claims and cycle.facts.claims:
            return None
        signature = cycle.facts.signature
        entry = self._entries.get(signature)
        if entry is None:
            if not self._history.worth_an_entry(signature, cycle.pod.uid):
                return None
            entry = self._entries[signature] = _Entry(self._cluster, self._dependences)
            if len(self._entries) > MOST_ENTRIES:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(signature)
        try:
            return entry.answers if self._refresh(entry, cycle) else None
        except PluginError:  # may be about a node that is not asked about now: without the cache it is seen
            del self._entries[signature]
        except Exception as error:  # a mistake of the cache: the answer is made without it
            del self._entries[signature]
            self._errors.add(error, self._report)
        return None

    def _refresh(self, entry: _Entry, cycle: Cycle) -> bool:
        """Bring an entry up to date; False where a plugin cannot tell its answer key."""
        cluster, answers, moved = self._cluster, entry.answers, entry.keys.moved(cycle)
        if not entry.keys.tellable:
            return False  # once it can, it counts as moved
        changes = read_changes(entry.cursor, cluster)
        if moved or changes is None or answers.numbers is None or len(answers.numbers) != cluster.columns.rows:
            answers.replace(*self._ask(cycle, Nodes(cluster)))
            return True
        nodes, nodes_and_pods = changes
        changed = nodes_and_pods if self._pods else nodes
        if changed:
            rows = np.array(list(changed), dtype=np.intp)
            answers.set_rows(rows, *self._ask(cycle, Nodes(cluster, rows)))
        return True
