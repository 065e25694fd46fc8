import random

import pytest

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
