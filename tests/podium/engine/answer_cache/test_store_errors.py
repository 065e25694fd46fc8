"""A mistake in the answer cache is reported once, counted, costs no pod, and fails tests."""

from __future__ import annotations

import pytest

from podium.engine.answer_cache.store import CacheEntry, UnexpectedErrors
from podium.framework import Cycle
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod


def broken(_entry: CacheEntry, _cycle: Cycle, _start: int) -> int:
    raise ZeroDivisionError("a mistake of ours")


@pytest.fixture
def mistaken(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(CacheEntry, "decide", broken)
    return World(default=True, nodes=[make_node("n1")])


def test_the_pods_are_placed_and_the_mistake_is_counted_and_reported_once(
    mistaken: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UnexpectedErrors, "strict", False)
    for number in range(4):
        mistaken.attempt(make_pod(f"p{number}"))
    assert mistaken.bound == [(f"p{number}", "n1") for number in range(4)]
    assert mistaken.scheduler.answer_cache.errors.count == 3, "the first pod of a signature is not decided by the cache"
    (message,) = [each for each in mistaken.reports if "answer cache" in each]
    assert message.startswith("answer cache: unexpected ZeroDivisionError")
    assert "in broken" in message
    assert message.endswith("ZeroDivisionError: a mistake of ours")


def test_another_place_is_another_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnexpectedErrors, "strict", False)
    errors, reports = UnexpectedErrors(), list[str]()
    for _ in range(3):
        for text in ("x", ""):
            try:
                int(text) if text else len(text) // len(text)
            except Exception as error:
                errors.add(error, reports.append)
            try:
                text.index("y")
            except Exception as error:
                errors.add(error, reports.append)
    assert errors.count == 12
    assert [report.split(";")[0].split()[-1] for report in reports] == ["ValueError", "ValueError"]


def test_under_tests_it_is_raised(mistaken: World) -> None:
    assert UnexpectedErrors.strict, "tests/conftest.py switches it on"
    mistaken.attempt(make_pod("a"))
    with pytest.raises(ZeroDivisionError):
        mistaken.attempt(make_pod("b"))
