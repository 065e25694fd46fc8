"""Pods that time will help are due in order, each once."""

from hypothesis import given
from hypothesis import strategies as st

from podium.engine.queue.unschedulable_pods import WakeTimes


def test_the_earliest_time_of_a_pod_counts() -> None:
    times = WakeTimes()
    assert times.first() is None
    for when in (5.0, 3.0, 9.0):
        times.set("a", when)
    times.set("b", 4.0)
    assert times.first() == 3.0
    assert list(times.due(2.9)) == []
    assert list(times.due(4.0)) == ["a", "b"]
    assert times.first() is None


def test_a_pod_that_goes_has_no_time() -> None:
    times = WakeTimes()
    times.set("a", 3.0)
    times.drop("a")
    assert (times.first(), list(times.due(10.0))) == (None, [])
    times.set("a", 7.0)
    assert times.first() == 7.0


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 20))), st.integers(0, 20))
def test_what_is_due_is_what_a_plain_dictionary_says(given_times: list[tuple[str, int]], now: int) -> None:
    times, plain = WakeTimes(), dict[str, int]()
    for key, when in given_times:
        times.set(key, when)
        plain[key] = min(when, plain.get(key, when))
    due = list(times.due(now))
    assert sorted(due) == sorted(key for key, when in plain.items() if when <= now)
    assert [plain[key] for key in due] == sorted(plain[key] for key in due)
    assert times.first() == min((when for when in plain.values() if when > now), default=None)
