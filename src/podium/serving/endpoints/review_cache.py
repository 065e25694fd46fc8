"""Caches answers of the API server for a short while, and asks only once at a time about the same thing."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST = 4096


class ReviewCache(Generic[K, V]):
    """Answers, each cached for `seconds`; what could not be answered is asked again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asking: dict[K, asyncio.Task[V]] = {}

    def __contains__(self, key: K) -> bool:
        """Whether an answer is cached, or being asked for."""
        known = self._answers.get(key)
        return key in self._asking or (known is not None and asyncio.get_running_loop().time() < known[0])

    async def get(self, key: K, ask: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The answer under this key: cached, being asked for already, or asked for now."""
        known = self._answers.get(key)
        if known is not None and asyncio.get_running_loop().time() < known[0]:
            return known[1]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._answer(key, ask))
            task.add_done_callback(_look_at)
        return await asyncio.shield(task)  # a request that is cancelled does not take the answer from the others

    async def _answer(self, key: K, ask: Callable[[], Coroutine[Any, Any, V]]) -> V:
        try:
            answer = await ask()
        finally:
            del self._asking[key]
        self._answers.pop(key, None)
        self._answers[key] = (asyncio.get_running_loop().time() + self._seconds, answer)
        while len(self._answers) > MOST:
            self._answers.popitem(last=False)
        return answer


def _look_at(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from complaining about a failure that no request waits for any more."""
    if not task.cancelled():
        task.exception()
