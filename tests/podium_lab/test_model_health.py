"""When the model is no longer trusted to decide."""

from __future__ import annotations

import pytest

from podium_lab.model_health import FEWEST, WINDOW, ModelHealth


def decide(health: ModelHealth, number: int, *, bad: bool = False) -> list[bool]:
    demoted = []
    for _ in range(number):
        health.decided()
        demoted.append(bad and health.was_bad())
    return demoted


def test_a_model_that_does_badly_is_demoted_once() -> None:
    health = ModelHealth(0.05)
    decide(health, FEWEST)
    assert decide(health, 50, bad=True).count(True) == 1
    assert health.demoted
    assert health.demotions == 1
    assert health.bad_share == pytest.approx(50 / 250)


def test_a_few_decisions_are_not_judged() -> None:
    health = ModelHealth(0.05)
    assert not any(decide(health, FEWEST - 1, bad=True))
    assert decide(health, 1, bad=True) == [True]


def test_what_was_bad_long_ago_is_forgotten() -> None:
    health = ModelHealth(0.05)
    decide(health, WINDOW - 50)
    decide(health, 50, bad=True)
    assert not health.demoted, "exactly the share that may be"
    decide(health, WINDOW)
    assert health.bad_share == 0
    assert not any(decide(health, 50, bad=True))


def test_one_decision_is_bad_once() -> None:
    health = ModelHealth(0.0)
    health.decided()
    health.was_bad()
    health.was_bad()
    decide(health, 3)
    assert health.bad_share == 0.25


def test_another_policy_begins_again() -> None:
    health = ModelHealth(0.05)
    decide(health, FEWEST, bad=True)
    assert health.demoted
    health.begin()
    assert not health.demoted
    assert health.bad_share == 0
    assert health.demotions == 1


def test_times_and_comparisons_are_summed_up() -> None:
    health = ModelHealth(0.05)
    assert health.seconds(0.5) == []
    for number in range(101):
        health.took(number / 100)
    assert health.seconds(0.5, 0.99) == pytest.approx([0.5, 0.99])
    health.compared(True, 1.0)
    health.compared(False, -0.5)
    assert health.comparisons == {"same": 1, "differs": 1}
    assert health.correlations == 0.5
