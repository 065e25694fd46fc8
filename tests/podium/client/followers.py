"""A follower of a reflector that keeps its own copy and complains about every step that makes no sense."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from podium.client import ApiResource, Client, Reflector
from podium.client.reading import Reader
from podium.client.reflector import Backoff, WatchOptions


class Follower:
    """`copy` is what the callbacks alone lead to; `steps` names them in order ("set a", "delete a")."""

    def __init__(self, resource: ApiResource[Any]) -> None:
        self.copy: dict[str, Any] = {}
        self.steps: list[str] = []
        self.reports: list[str] = []
        self._identify = Reader(resource).identify

    def on_set(self, obj: Any) -> None:
        key, uid, version = self._identify(obj)
        known = self.copy.get(key)
        if known is not None:
            before = self._identify(known)
            assert before.uid == uid, f"{key} was made anew and nobody said that the old one went"
            assert before.version != version, f"{key} was told twice"
        self.copy[key] = obj
        self.steps.append(f"set {key}")

    def on_delete(self, obj: Any) -> None:
        key, uid, _ = self._identify(obj)
        assert self._identify(self.copy.pop(key)).uid == uid
        self.steps.append(f"delete {key}")


def make_reflector(
    client: Client, resource: ApiResource[Any], *, first: float = 0.01, longest: float = 0.05, **options: Any
) -> tuple[Reflector[Any], Follower]:
    follower = Follower(resource)
    rng = random.Random(1)
    reflector = Reflector(
        client,
        resource,
        on_set=options.pop("on_set", follower.on_set),
        on_delete=options.pop("on_delete", follower.on_delete),
        report=follower.reports.append,
        rng=rng,
        options=WatchOptions(**{"backoff": Backoff(rng, first=first, longest=longest), **options}),
    )
    return reflector, follower


@asynccontextmanager
async def running(reflector: Reflector[Any]) -> AsyncIterator[None]:
    """The reflector runs; leaving ends it, and it must not have ended by itself."""
    task = asyncio.create_task(reflector.run())
    try:
        yield
        assert not task.done(), task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool], what: str = "", seconds: float = 30.0) -> None:
    """Waits for the condition; a test that waits in vain says for what."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        assert loop.time() < deadline, f"waited in vain {what}"
        await asyncio.sleep(0.005)
