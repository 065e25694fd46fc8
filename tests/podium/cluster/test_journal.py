"""A cursor hands out what was recorded since it was last read, or says that everything may have changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Journal, journal
from tools.kit.builders import make_cluster, make_node, make_pod


def test_a_cursor_hands_out_what_was_recorded_and_moves_on() -> None:
    changes: Journal[str] = Journal()
    changes.append("before")
    cursor = changes.cursor()
    assert cursor.read() is None, "at first everything may have changed"
    assert cursor.at_end
    assert cursor.read() == []
    for name in ("a", "b", "a"):
        changes.append(name)
    assert not cursor.at_end
    assert cursor.read() == ["a", "b", "a"]
    assert cursor.read() == []


def test_a_cursor_that_the_journal_was_cut_behind_says_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LIMIT", 4)
    changes: Journal[int] = Journal()
    slow, quick = changes.cursor(), changes.cursor()
    assert slow.read() is None
    assert quick.read() is None
    for number in range(10):
        changes.append(number)
        assert quick.read() == [number]
    assert slow.read() is None
    changes.append(10)
    assert slow.read() == [10]


def test_what_a_dry_run_recorded_is_taken_back() -> None:
    cluster = make_cluster([make_node("a"), make_node("b")])
    cursor = cluster.row_cursor()
    cursor.read()
    stand_in = cluster.stand_in(make_pod("p"), 1)
    with cluster.dry_run():
        cluster.put_on(stand_in)
        cluster.take_off(stand_in)
    assert cursor.at_end
    assert cursor.read() == ([], [])


def test_a_cursor_read_in_a_dry_run_starts_over_after_it() -> None:
    """Otherwise what it read of row 1 would be taken for what holds, however much is recorded later."""
    cluster = make_cluster([make_node("a"), make_node("b")])
    cursor = cluster.row_cursor()
    cursor.read()
    stand_in = cluster.stand_in(make_pod("p"), 1)
    with cluster.dry_run():
        cluster.put_on(stand_in)
        assert cursor.read() == ([], [1])
        cluster.take_off(stand_in)
    for number in range(3):
        cluster.set_pod(make_pod(f"other-{number}", node="a"))
    assert cursor.read() is None
    assert cursor.read() == ([], [])


@given(st.lists(st.sampled_from(["append", "open", "close", "read"]), max_size=30))
def test_reading_piece_by_piece_misses_nothing(steps: list[str]) -> None:
    """Whatever is recorded, taken back and read in whichever order: a reader that trusts its cursor is right."""
    changes: Journal[int] = Journal()
    cursor, truth, known, open_runs = changes.cursor(), [0] * 3, [0] * 3, []
    for number, step in enumerate(steps):
        if step == "append":
            truth[number % 3] += 1
            changes.append(number % 3)
        elif step == "open":
            open_runs.append((changes.begin_dry_run(), truth.copy()))
        elif step == "close" and open_runs:
            before, truth = open_runs.pop()
            changes.end_dry_run(before)
        elif step == "read":
            rows = cursor.read()
            for row in range(3) if rows is None else rows:
                known[row] = truth[row]
            assert known == truth
