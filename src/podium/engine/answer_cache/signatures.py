"""Decides which signatures of pods are worth a cache entry.

Answers cached for pods that are all different cost more than they save. So a signature gets an entry when a second pod
with it comes, or one pod for the third time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec

MOST_SIGNATURES = 10_000
PATIENCE = 2
"""So many times the only pod with a signature is decided without the cache."""

K = TypeVar("K")


class _History(msgspec.Struct, gc=False):
    """How often a signature came that has no entry, and the uid of the first pod with it."""

    first: str
    times: int = 0
    cacheable: bool = True


class SignatureHistory(Generic[K]):
    """The signatures without an entry that came last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[K, _History] = OrderedDict()

    def worth_an_entry(self, signature: K, uid: str) -> bool:
        """Count a pod; whether its signature has come often enough, and its answers can be cached."""
        history = self._of(signature, uid)
        history.times += 1
        return history.cacheable and (history.first != uid or history.times > PATIENCE)

    def not_cacheable(self, signature: K, uid: str) -> None:
        """Answers for this signature cannot be cached: it gets no entry while it is remembered."""
        self._of(signature, uid).cacheable = False

    def came_once(self, signature: K) -> bool:
        history = self._seen.get(signature)
        return history is not None and history.times == 1

    def _of(self, signature: K, uid: str) -> _History:
        history = self._seen.get(signature)
        if history is None:
            history = self._seen[signature] = _History(uid)
            if len(self._seen) > MOST_SIGNATURES:
                self._seen.popitem(last=False)
        return history
