"""Ridge regression that forgets: what it expects, how sure it is, and how it notices that the world has changed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from podium_lab.online.bandit import DISTRUST, RidgeBandit

Floats = NDArray[np.float64]
TRUTH = np.array([0.9, -0.4, 0.1])


def examples(rng: np.random.Generator, number: int) -> list[Floats]:
    return [np.array([1.0, *rng.uniform(0, 1, 2)]) for _ in range(number)]


def taught(truth: Floats = TRUTH, number: int = 300, noise: float = 0.0, forgetting: float = 0.995) -> RidgeBandit:
    rng = np.random.default_rng(1)
    bandit = RidgeBandit(3, forgetting)
    for x in examples(rng, number):
        bandit.learn(x, float(truth @ x) + noise * float(rng.standard_normal()))
    return bandit


def test_it_finds_the_weights_that_rewards_come_from() -> None:
    assert taught().model().weights == pytest.approx(TRUTH, abs=0.02)
    assert taught(noise=0.1).model().weights == pytest.approx(TRUTH, abs=0.1)


def test_it_is_the_surer_the_more_it_has_seen_and_least_about_what_it_has_not() -> None:
    few, many = taught(number=10, noise=0.05).model(), taught(number=300, noise=0.05).model()
    seen, unseen = np.array([[1.0], [0.5], [0.5]]), np.array([[1.0], [0.5], [9.0]])
    assert many.deviation(seen)[0] < few.deviation(seen)[0]
    assert many.deviation(seen)[0] < many.deviation(unseen)[0]


def test_a_sort_of_node_that_was_not_tried_for_long_is_expected_to_be_like_the_others() -> None:
    bandit = RidgeBandit(3, 0.95)
    bad, good = np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
    for _ in range(30):
        bandit.learn(bad, 0.2)
        bandit.learn(good, 0.9)
    at_once = bandit.model().expected(bad[:, np.newaxis])[0]
    for _ in range(200):
        bandit.learn(good, 0.9)
    assert at_once == pytest.approx(0.2, abs=0.05)
    assert bandit.model().expected(bad[:, np.newaxis])[0] == pytest.approx(0.9, abs=0.05)


def test_a_sudden_change_is_noticed_and_learnt() -> None:
    bandit = taught(noise=0.05)
    assert bandit.changes == 0
    rng = np.random.default_rng(2)
    opposite = np.array([0.5, 0.4, 0.1])
    distrusted = []
    for x in examples(rng, 100):
        bandit.learn(x, float(opposite @ x) + 0.05 * float(rng.standard_normal()))
        distrusted.append(bandit.model().distrusted)
    assert bandit.changes == 1
    assert sum(distrusted) == DISTRUST, "not trusted for a while, and again after it"
    assert distrusted.index(True) < 20
    assert bandit.model().weights == pytest.approx(opposite, abs=0.15)


def test_noise_alone_is_no_change() -> None:
    assert taught(number=3000, noise=0.1).changes == 0
