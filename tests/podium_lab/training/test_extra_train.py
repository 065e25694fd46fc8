"""Without the extra, one sentence says what to install."""

from __future__ import annotations

import sys

import pytest

from podium_lab.learning.extra import LearningError
from tests.podium.cli.command import podium


def test_without_jax_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    for name in [name for name in sys.modules if name.startswith(("podium_lab.training", "podium_lab.environments"))]:
        monkeypatch.delitem(sys.modules, name)
    found = podium("train", "--algorithm", "ppo", "--objective", "least-allocated")
    assert (found.code, found.err) == (2, "jax is not installed; install podium[train]\n")


def test_without_gymnasium_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "podium_lab.environments.scheduling_env", raising=False)
    with pytest.raises(LearningError, match=r"gymnasium is not installed; install podium\[train\]"):
        import podium_lab.environments.scheduling_env  # noqa: F401  (its import is what is tested)


def test_an_unknown_objective_is_refused_by_name() -> None:
    found = podium("train", "--algorithm", "dqn", "--objective", "tidy")
    assert found.code == 2
    assert found.err.startswith('--objective: there is no objective "tidy"; write one of least-allocated')
