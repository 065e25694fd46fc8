"""Tables fit into any width, and no number, name or heading in them is ever cut."""

from __future__ import annotations

import re

import pytest
from rich.console import Console
from rich.table import Table

from podium.cli.console import print_table, table

PROFILES = ("default", "LoadVariationRiskBalancing", "TargetLoadPacking")
NUMBERS = {name: [f"{1000 * i + len(name)}.{i:02} ± {i}.5" for i in range(11)] for name in PROFILES}


def printed(capsys: pytest.CaptureFixture[str], rows: Table, width: int, *, turn: bool = False) -> str:
    print_table(Console(width=width, highlight=False), rows, turn=turn)
    return capsys.readouterr().out


def figures() -> Table:
    rows = table()
    rows.add_column("profile", no_wrap=True)
    for i in range(11):
        rows.add_column(f"figure {i}, %", justify="right")
    for name in PROFILES:
        rows.add_row(name, *NUMBERS[name])
    return rows


@pytest.mark.parametrize("turn", [True, False])
@pytest.mark.parametrize("width", [20, 45, 50, 80, 119, 120, 200, 400])
def test_every_number_and_name_is_whole_at_every_width(
    width: int, turn: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, figures(), width, turn=turn)
    for word in (
        *PROFILES,
        *(f"figure {i}, %" for i in range(11)),
        *(each for row in NUMBERS.values() for each in row),
    ):
        assert re.search(rf"(^|\s){re.escape(word)}(\s|$)", text, re.MULTILINE), (word, text)
    assert "…" not in text
    if width >= 45:
        assert max(map(len, text.splitlines())) <= width, text


def test_a_table_that_is_too_wide_is_turned_round(capsys: pytest.CaptureFixture[str]) -> None:
    first, _, second, *_ = printed(capsys, figures(), 80, turn=True).splitlines()
    assert first.split() == list(PROFILES)
    assert second.split()[:3] == ["figure", "0,", "%"]
    assert printed(capsys, figures(), 400, turn=True).startswith("profile ")


def test_texts_are_wrapped_before_numbers_are_parted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table("Title")
    rows.add_column("reason")
    rows.add_column("pods", justify="right")
    rows.add_row("no node has room for it and none will have any soon", "1,234,567")
    text = printed(capsys, rows, 40)
    assert "1,234,567" in text
    assert text.count("Title") == text.count("pods") == 1
    assert max(map(len, text.splitlines())) <= 40
