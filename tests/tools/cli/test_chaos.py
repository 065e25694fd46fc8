"""`podium chaos`: what it prints when all is well, when something is not, and when it was asked for nonsense."""

import json

import pytest

from podium.serving.election import Election
from tests.podium.cli.command import podium


def test_seeds_that_hold_are_counted_with_invariants_and_faults() -> None:
    ran = podium("chaos", "--seeds", "3", "--workload", "basic")
    assert (ran.code, ran.err) == (0, "")
    assert "only the leader writes" in ran.out
    assert ran.out.splitlines()[-1].startswith("1 seeds, ")
    assert ran.out.splitlines()[-1].endswith(": all invariants hold")


@pytest.mark.long
def test_data_can_be_had_instead() -> None:
    data = json.loads(podium("chaos", "--seeds", "3", "--json").out)
    assert (data["seeds"], data["failures"]) == (1, [])
    assert data["invariants"]["no pod is lost"] == 1


@pytest.mark.long
def test_everything_that_happened_can_be_read() -> None:
    out = podium("chaos", "--seeds", "3", "-v").out
    assert out.startswith("seed 3, workload drawn\n")
    assert "faults end" in out


def test_a_seed_that_fails_is_shown_with_the_command_that_shows_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Election, "guard", lambda self: None)
    ran = podium("chaos", "--seeds", "4")
    assert ran.code == 1
    assert "seed 4 failed:" in ran.out
    assert "only the leader writes: " in ran.out
    assert "see it again: podium chaos --seeds 4 -v" in ran.out
    assert ran.out.splitlines()[-1].endswith(": 1 failed")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seeds", "x"], '"x" are no seeds: write one (42), a range (42-51), or several with commas'),
        (
            ["--workload", "x"],
            'there is no workload "x": choose one of basic, preemption, affinity, churn, ',
        ),
        (["--workers", "0"], "should be greater than or equal to 1"),
    ],
)
def test_nonsense_is_told_in_one_sentence(arguments: list[str], sentence: str) -> None:
    ran = podium("chaos", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1
