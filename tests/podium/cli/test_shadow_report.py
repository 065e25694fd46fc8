"""`podium shadow report` sums up what a shadow logged."""

import json

import pytest

from podium.run.shadow import MEANINGS, Finding
from tests.podium.cli.command import podium

LOG = "\n".join(
    [
        json.dumps({"time": "t", "level": "info", "message": "podium runs"}),
        "a line of something else",
        *(json.dumps({"shadow": {"outcome": "same", "pod": f"default/p{i}"}}) for i in range(6)),
        json.dumps({"shadow": {"outcome": "tie", "pod": "default/t", "podium": "a", "other": "b"}}),
        json.dumps({"shadow": {"outcome": "differs", "pod": "default/d", "podium": "a", "other": "b", "points": 7}}),
        json.dumps({"shadow": {"outcome": "refused", "pod": "x/r", "podium": "a", "other": "b", "reason": "Too big"}}),
    ]
)


def test_outcomes_are_counted_and_differences_listed() -> None:
    ran = podium("shadow", "report", "-", stdin=LOG)
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["same", "6", "66.7%"] in [line[:3] for line in lines]
    assert ["default/d", "differs", "a", "b", "7"] in lines
    assert ["x/r", "refused", "a", "b", "Too", "big"] in lines
    assert not any("default/t" in line for line in lines)


def test_as_data() -> None:
    data = json.loads(podium("shadow", "report", "-", "-o", "json", stdin=LOG).out)
    assert data["pods"] == 9
    assert data["outcomes"] == {"same": 6, "tie": 1, "differs": 1, "refused": 1}
    assert [each["pod"] for each in data["differences"]] == ["default/d", "x/r"]


def test_a_log_without_findings_says_how_to_make_one() -> None:
    ran = podium("shadow", "report", "-", stdin="nothing here")
    assert ran.code == 2
    assert "--log-format json" in ran.err


def test_a_log_without_agreement_says_that_shares_mean_little() -> None:
    line = json.dumps({"shadow": {"outcome": "tie", "pod": "default/t", "podium": "a", "other": "b"}})
    assert "--log-level debug" in podium("shadow", "report", "-", stdin=line).out
    assert "--log-level debug" not in podium("shadow", "report", "-", stdin=LOG).out


def test_an_outcome_that_is_none_of_ours_is_passed_over() -> None:
    line = json.dumps({"shadow": {"outcome": "odd", "pod": "default/t"}})
    assert podium("shadow", "report", "-", stdin=line).code == 2


@pytest.mark.parametrize("outcome", MEANINGS)
def test_every_outcome_reads_as_a_sentence(outcome: str) -> None:
    assert "default/p" in str(Finding(outcome, "default/p", "a", "b", 3, "why"))
