"""The one way in which processes that serve begin, work and end."""

from __future__ import annotations

import asyncio

import pytest

from podium.serving.election import LeadershipLost
from podium.serving.process_loop import FINE, LOST, ProcessLoop


def test_what_runs_beside_runs_until_the_work_is_finished() -> None:
    async def main() -> tuple[int, list[str]]:
        told: list[str] = []
        stop, loop = asyncio.Event(), ProcessLoop()

        async def beside() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                told.append("ended")

        async def finish() -> None:
            told.append(f"finishing: {loop.shutting_down()}")

        def work() -> None:
            told.append(f"works: {loop.shutting_down()}")
            stop.set()

        return await loop.run(stop, [beside()], work, finish), told

    ended, told = asyncio.run(main())
    assert ended == FINE
    assert told == ["works: None", "finishing: process is shutting down", "ended"]


def test_a_part_that_fails_fails_the_process_and_nothing_is_finished() -> None:
    async def fails() -> None:
        raise ValueError("a mistake")

    async def finish() -> None:
        raise AssertionError("there is nothing to finish")

    async def main() -> int:
        return await ProcessLoop().run(asyncio.Event(), [fails()], None, finish)

    with pytest.raises(ValueError, match="a mistake"):
        asyncio.run(main())


def test_a_lost_lease_ends_the_process_with_1_and_nothing_is_finished() -> None:
    async def loses() -> None:
        raise LeadershipLost("another leads")

    async def finish() -> None:
        raise AssertionError("another process does the work now")

    async def main() -> int:
        return await ProcessLoop().run(asyncio.Event(), [loses()], None, finish)

    assert asyncio.run(main()) == LOST
