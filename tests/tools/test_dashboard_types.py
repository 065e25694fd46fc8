"""The browser's types are made from the server's."""

from __future__ import annotations

from tools.dashboard_types import TYPES, types


def test_the_types_of_the_page_are_those_of_the_server() -> None:
    assert TYPES.read_text(encoding="utf-8") == types(), "run python -m tools.dashboard_types, then make dashboard"
