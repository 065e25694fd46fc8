"""Go layouts: what they read, and what they do not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podium_plugins.node_metadata.go_layout import LayoutError, reader_of

READ = [
    ("2006-01-02T15:04:05Z07:00", "2026-08-16T09:30:00Z", "2026-08-16T09:30:00"),
    ("2006-01-02T15:04:05Z07:00", "2026-08-16T09:30:00.999+02:00", "2026-08-16T07:30:00"),
    ("2006-01-02T15:04:05.000Z0700", "2026-08-16T09:30:00.123-0130", "2026-08-16T11:00:00"),
    ("2006-01-02 15:04:05 -07", "2026-08-16 09:30:00 +01", "2026-08-16T08:30:00"),
    ("Mon, 02 Jan 2006 15:04:05 MST", "Sun, 16 Aug 2026 09:30:00 GMT", "2026-08-16T09:30:00"),
    ("Monday, 02-Jan-06 15:04:05 MST", "Sunday, 16-Aug-26 09:30:00 UTC", "2026-08-16T09:30:00"),
    ("January 2, 2006 at 3:04pm", "August 6, 2026 at 12:30am", "2026-08-06T00:30:00"),
    ("Jan _2 2006 03PM", "Aug  6 2026 12PM", "2026-08-06T12:00:00"),
    ("2006-002", "2024-366", "2024-12-31T00:00:00"),
    ("2006.__2", "2026.  9", "2026-01-09T00:00:00"),
    ("20060102150405", "20260816093000", "2026-08-16T09:30:00"),
    ("2006_01_02", "2026_08_16", "2026-08-16T00:00:00"),
    ("1/2/06", "8/16/70", "1970-08-16T00:00:00"),
    ("2006 (v1.5) 01-02", "2026 (v8.30) 12-01", None),
]


@pytest.mark.parametrize(("layout", "text", "expected"), READ)
def test_times_are_read(layout: str, text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(LayoutError):
            reader_of(layout)
        return
    found = reader_of(layout)(text)
    assert found == int(datetime.fromisoformat(expected).replace(tzinfo=UTC).timestamp())


NOT_READ = [
    ("2006-01-02", "2026-02-30"),
    ("2006-01-02", "2026-1-2"),
    ("2006-01-02", "2026-01-02 "),
    ("2006-01-02", "２０２６-01-02"),
    ("15:04", "24:00"),
    ("3PM", "13PM"),
    ("2006-002", "2025-366"),
    ("2006-01-02T15:04:05Z07:00", "2026-08-16T09:30:00"),
    ("2006-01-02T15:04:05-07:00", "2026-08-16T09:30:00+99:00"),
    ("Jan 2006", "Foo 2026"),
]


@pytest.mark.parametrize(("layout", "text"), NOT_READ)
def test_what_is_no_such_time_is_not_read(layout: str, text: str) -> None:
    assert reader_of(layout)(text) is None


def test_a_time_of_day_is_in_the_year_0() -> None:
    read = reader_of("15:04")
    assert (read("09:30") or 0) - (read("09:00") or 0) == 1800
    assert (read("09:30") or 0) < 0


@pytest.mark.parametrize("layout", ["", "yyyy-mm-dd", "2006 2006"])
def test_a_layout_that_reads_nothing_is_refused(layout: str) -> None:
    with pytest.raises(LayoutError):
        reader_of(layout)
