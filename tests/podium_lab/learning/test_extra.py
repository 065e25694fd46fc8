"""Without the extra, one sentence says what to install."""

from __future__ import annotations

import sys

import pytest

from tests.podium.cli.command import podium

KERNEL = "podium_lab.learning.kernel"


@pytest.mark.parametrize(
    "arguments", [("evaluate", "readable", "--data", "."), ("train", "--data", "."), ("evaluate", "--bound")]
)
def test_without_numba_one_sentence_says_what_to_install(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setitem(sys.modules, "numba.extending", None)
    for name in [
        name for name in sys.modules if name.startswith("podium_lab.learning") and not name.endswith(".extra")
    ]:
        monkeypatch.delitem(sys.modules, name)
    found = podium(*arguments)
    assert (found.code, found.err) == (2, "numba is not installed; install podium[learn]\n")


def test_a_policy_is_shown_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert podium("policy", "show", "readable").code == 0
