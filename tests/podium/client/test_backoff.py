"""The limit on one's own requests, on a clock of its own."""

import asyncio
import random

import pytest

from podium.client.client import Throttle
from podium.client.reflector import Backoff


class Unlucky(random.Random):
    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    backoff = Backoff(Unlucky(0.0))
    assert [backoff.delay(now) for now in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_a_wait_is_stretched_at_random_by_up_to_as_much_again() -> None:
    assert Backoff(Unlucky(0.5)).delay(0) == pytest.approx(1.2)
    delays = [Backoff(random.Random(seed)).delay(0) for seed in range(100)]
    assert 0.8 <= min(delays) < 0.9
    assert 1.5 < max(delays) < 1.6


def test_it_starts_over_after_two_minutes_without_a_wait() -> None:
    backoff = Backoff(Unlucky(0.0))
    assert [backoff.delay(now) for now in (0, 120, 240.1, 361)] == [0.8, 1.6, 0.8, 0.8]


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time moves only when everybody sleeps, and then at once."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 1000.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def times(qps: float, burst: int, requests: int, *, pause_after: int = 0, pause: float = 0) -> list[float]:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        throttle = Throttle(qps, burst)
        began = loop.time()
        let_go: list[float] = []
        for number in range(requests):
            if pause_after and number == pause_after:
                await asyncio.sleep(pause)
            await throttle.take(float("inf"))
            let_go.append(round(loop.time() - began, 6))
        return let_go

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def test_the_burst_goes_at_once_and_the_rest_by_the_rate() -> None:
    assert times(10, 3, 6) == [0, 0, 0, 0.1, 0.2, 0.3]


def test_a_pause_saves_up_to_a_burst() -> None:
    assert times(10, 3, 8, pause_after=4, pause=100) == [0, 0, 0, 0.1, 100.1, 100.1, 100.1, 100.2]


def test_without_a_burst_it_is_ten() -> None:
    assert times(1, 0, 12)[-3:] == [0, 1, 2]


def test_many_at_once_are_let_go_in_their_order() -> None:
    async def main() -> list[int]:
        throttle = Throttle(100, 1)
        order: list[int] = []

        async def ask(number: int) -> None:
            await throttle.take(float("inf"))
            order.append(number)

        await asyncio.gather(*(ask(number) for number in range(20)))
        return order

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(main()) == list(range(20))


def test_one_that_would_come_too_late_is_refused_at_once_and_takes_no_place() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        throttle = Throttle(1, 1)
        began = loop.time()
        await throttle.take(began + 5)
        with pytest.raises(TimeoutError):
            await throttle.take(began + 0.5)
        await throttle.take(began + 5)
        assert loop.time() - began == 1

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
