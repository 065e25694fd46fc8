"""Submits objects to a cluster at their times, and deletes them when their time is over.

Times are those of the workload; the speed says how many of its seconds pass in one. What the cluster refuses is said
and left out: the rest of the workload goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from podium.client import Access, ApiError, Client, ClientError
from podium.kube.json_object import JsonObject


class Submission(NamedTuple):
    """An object that comes at a time and goes at another, both in seconds of the workload."""

    at: float
    until: float
    collection: str
    """The path that it is posted to."""
    value: JsonObject

    @property
    def name(self) -> str:
        return str(self.value["metadata"]["name"])


async def play(
    access: Access,
    before: Iterable[Submission],
    submissions: Sequence[Submission],
    *,
    speed: float,
    leave: bool,
    say: Callable[[str], object],
) -> int:
    """Submit everything; how many objects were refused. `before` comes first, and stays."""
    async with Client(access) as client:
        for each in before:
            await _create(client, each, say, quiet=True)
        start = asyncio.get_running_loop().time()

        async def until(moment: float) -> None:
            await asyncio.sleep(max(0.0, start + moment / speed - asyncio.get_running_loop().time()))

        async def live(each: Submission) -> bool:
            await until(each.at)
            if not await _create(client, each, say):
                return False
            if not leave:
                await until(each.until)
                await _delete(client, each, say)
            return True

        return sum(not done for done in await asyncio.gather(*map(live, submissions)))


async def _create(client: Client, each: Submission, say: Callable[[str], object], *, quiet: bool = False) -> bool:
    try:
        await client.post(each.collection, each.value)
    except ApiError as error:
        if quiet and error.conflict:
            return True
        say(f"{each.name}: not created: {error.message}")
        return False
    except ClientError as error:
        say(f"{each.name}: not created: {error}")
        return False
    if not quiet:
        say(f"{each.at:g} s: {each.name}")
    return True


async def _delete(client: Client, each: Submission, say: Callable[[str], object]) -> None:
    try:
        await client.delete(f"{each.collection}/{each.name}", {"propagationPolicy": "Background"})
    except ApiError as error:
        if not error.not_found:
            say(f"{each.name}: not deleted: {error.message}")
    except ClientError as error:
        say(f"{each.name}: not deleted: {error}")
