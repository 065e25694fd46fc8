"""Measures how long work takes, for progress and for stragglers; no result depends on it."""

from __future__ import annotations

from time import monotonic


def seconds_now() -> float:
    """Seconds of a clock that never goes back."""
    return monotonic()
