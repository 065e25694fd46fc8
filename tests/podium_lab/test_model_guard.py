"""When the model may be asked."""

from __future__ import annotations

from podium_lab.model_guard import IN_A_ROW, PAUSE, ModelGuard


def test_late_answers_in_a_row_open_the_breaker_for_a_while() -> None:
    guard = ModelGuard(0.005)
    for _ in range(IN_A_ROW):
        assert guard.reason(100.0) is None
        guard.took(1000, 0.006, 100.0)
    assert guard.reason(100.0) == "breaker_open"
    assert guard.overruns == IN_A_ROW
    assert guard.reason(100.0 + PAUSE) is None


def test_an_answer_in_time_begins_the_count_again() -> None:
    guard = ModelGuard(0.005)
    for _ in range(2):
        for _ in range(IN_A_ROW - 1):
            guard.took(1000, 0.006, 0.0)
        guard.took(1000, 0.001, 0.0)
    assert guard.reason(0.0) is None


def test_what_is_expected_to_be_late_is_not_begun() -> None:
    guard = ModelGuard(0.005)
    guard.took(100, 0.001, 0.0)
    before = guard.generation
    assert not guard.too_slow(500)
    assert guard.generation == before
    assert guard.too_slow(501)
    assert guard.generation == before + 1
    assert not guard.too_slow(501), "a slow moment is forgotten"


def test_every_change_moves_the_generation() -> None:
    guard = ModelGuard(0.005)
    seen = [guard.generation]
    guard.set_lasting("drift")
    seen.append(guard.generation)
    guard.set_lasting("drift")
    assert guard.generation == seen[-1]
    guard.set_lasting(None)
    seen.append(guard.generation)
    guard.failed(0.0)
    seen.append(guard.generation)
    assert len(set(seen)) == len(seen)
