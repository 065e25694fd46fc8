import asyncio

from podium.serving.work_queue import WorkQueue
from tools.kit.virtual_time import run_virtually


def test_keys_come_out_in_the_order_they_went_in_and_only_once() -> None:
    async def main() -> list[str]:
        queue: WorkQueue[str] = WorkQueue()
        for key in ("b", "a", "b", "c", "a"):
            queue.add(key)
        return [await queue.get() for _ in range(len(queue))]

    assert run_virtually(main()) == ["b", "a", "c"]


def test_a_key_may_be_added_again_as_soon_as_it_was_taken() -> None:
    async def main() -> list[str]:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        first = await queue.get()
        queue.add("a")
        return [first, await queue.get()]

    assert run_virtually(main()) == ["a", "a"]


def test_of_two_times_the_earlier_counts() -> None:
    async def main() -> tuple[str, float]:
        queue: WorkQueue[str] = WorkQueue()
        queue.add_after("a", 5)
        queue.add_after("a", 2)
        queue.add_after("a", 9)
        key = await queue.get()
        at = asyncio.get_running_loop().time()
        assert len(queue) == 0
        return key, at

    assert run_virtually(main()) == ("a", 2)


def test_what_fails_again_waits_twice_as_long_until_it_succeeds() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        queue: WorkQueue[str] = WorkQueue()
        waits = []
        for attempt in range(5):
            if attempt == 3:
                queue.succeeded("a")
            before = loop.time()
            queue.retry("a")
            await queue.get()
            waits.append(round(loop.time() - before, 6))
        return waits

    assert run_virtually(main()) == [0.005, 0.01, 0.02, 0.005, 0.01]
