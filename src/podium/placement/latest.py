"""Remembers the answer about the last pod: one decision asks the same question many times over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from podium.cluster import Store
from podium.kube import Pod

T = TypeVar("T")


class Latest(Generic[T]):
    """What `find` says of a pod, found once for as long as the same pod is asked about and no store changes."""

    def __init__(self, find: Callable[[Pod], T], *stores: Store[Any]) -> None:
        self._find = find
        self._stores = stores
        self._pod: Pod | None = None
        self._versions: list[int] = []
        self._found: T

    def of(self, pod: Pod) -> T:
        versions = [store.version for store in self._stores]
        if pod is not self._pod or versions != self._versions:
            self._found = self._find(pod)
            self._pod, self._versions = pod, versions
        return self._found
