from podium.framework.clock import ManualClock
from podium.placement.devices.search_time import SHORT, SearchTime


def test_a_search_may_take_all_of_the_time() -> None:
    clock = ManualClock(100.0)
    expired = SearchTime(clock.now, 10).begin()
    clock.advance(10)
    assert not expired()
    clock.advance(0.001)
    assert expired()


def test_searches_that_take_long_share_the_time() -> None:
    clock = ManualClock(100.0)
    time = SearchTime(clock.now, 10)
    time.begin()
    clock.advance(4)
    expired = time.begin()
    clock.advance(6)
    assert not expired()
    clock.advance(0.001)
    assert expired()


def test_short_searches_do_not_count_and_are_always_allowed() -> None:
    clock = ManualClock(100.0)
    time = SearchTime(clock.now, 10)
    for _ in range(1000):
        assert not time.begin()()
        clock.advance(SHORT / 2)
    time.begin()
    clock.advance(11)
    expired = time.begin()
    clock.advance(SHORT / 2)
    assert not expired()
    clock.advance(SHORT)
    assert expired()


def test_no_seconds_are_no_limit() -> None:
    clock = ManualClock(100.0)
    expired = SearchTime(clock.now, 0).begin()
    clock.advance(1e9)
    assert not expired()
