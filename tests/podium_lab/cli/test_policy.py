"""`podium policy report` on files that are logs, and on files that are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.podium.cli.command import podium


def test_a_file_without_decisions_is_no_log(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text("- 1\n- 2\n")
    ran = podium("policy", "report", str(log))
    assert (ran.code, ran.out) == (2, "")
    assert "no line is a decision" in ran.err
    log.write_text("")
    empty = podium("policy", "report", str(log), "-o", "json")
    assert (empty.code, json.loads(empty.out)["compared"]) == (1, 0)


def test_few_decisions_are_not_enough(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text('{"pod": "default/a", "source": "model", "node": "n1"}\n')
    ran = podium("policy", "report", str(log))
    assert ran.code == 1
    assert "decided by model: 1" in ran.out


def rows(difference: float, seeds: int = 3) -> str:
    found = [
        {"list": "mine", "policy": policy, "seed": seed, "ties": "fixed", "arrived_pct": 100, "gpu_allocation_pct": gpu}
        for seed in range(seeds)
        for policy, gpu in (("fill", 95 + difference + 0.01 * seed), ("BestFit", 95.0), ("FGD", 96.0))
    ]
    return json.dumps(found)


@pytest.mark.parametrize(
    ("written", "code", "last"),
    [
        (rows(0.5), 0, "ready to decide"),
        (rows(0.0), 0, "ready to decide"),
        (rows(-0.5), 1, "not yet ready: the replay does not rule out that fill is worse than BestFit"),
        (None, 1, "not yet ready: nothing was replayed: give --replay what podium evaluate --json prints"),
        (rows(0.5, seeds=1), 2, ""),
        ("{}", 2, ""),
        ("[", 2, ""),
    ],
)
def test_a_policy_may_decide_when_it_was_compared_and_replayed(
    tmp_path: Path, written: str | None, code: int, last: str
) -> None:
    log, replay = tmp_path / "decisions.jsonl", tmp_path / "rows.json"
    compared = '{"pod": "default/a", "nodes": 3, "fallback": ["a"], "model": ["a"], "tau": 0.5, "seconds": 0.001}\n'
    log.write_text(('{"pod": "default/a", "source": "shadow", "node": "a"}\n' + compared) * 10_000)
    options = []
    if written is not None:
        replay.write_text(written)
        options = ["--replay", str(replay)]
    ran = podium("policy", "report", str(log), *options)
    assert ran.code == code
    if last:
        assert "compared: 10000, same best node 100.0%, rank correlation 0.50" in ran.out
        assert "the model took: median 1 ms, 99th percentile 1 ms" in ran.out
        assert ran.out.splitlines()[-1] == last
        data = json.loads(podium("policy", "report", str(log), *options, "-o", "json").out)
        assert data["ready"] is (code == 0)
        assert data["problems"] == ([] if data["ready"] else [last.removeprefix("not yet ready: ")])
        assert (data["decisions"], data["sameBestNode"], data["p99Milliseconds"]) == ({"shadow": 10_000}, 1, 1)
        assert (data["replay"] and data["replay"]["seeds"]) == (3 if options else None)
    late = podium("policy", "report", str(log), *options, "--deadline", "0.5")
    assert late.code == max(code, 1)


def test_the_report_on_shadows_knows_the_log_of_learned_score(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text('{"pod": "default/a", "source": "shadow", "node": "a"}\n')
    ran = podium("shadow", "report", str(log))
    assert ran.code == 0
    assert "decided by shadow: 1" in ran.out


@pytest.mark.parametrize("arguments", [("show", "nope"), ("verify", "nope"), ("export", "nope", "out.onnx")])
def test_a_policy_that_is_not_there_is_answered_with_those_that_ship(arguments: tuple[str, ...]) -> None:
    ran = podium("policy", *arguments)
    ships = "fill, general, churn, both, readable, network"
    said = f"nope: there is no such file, and no policy of that name; those that ship are {ships}"
    assert (ran.code, ran.out, ran.err) == (2, "", f"{said}\n")


def test_the_policies_that_ship_are_listed() -> None:
    names = ["fill", "general", "churn", "both", "readable", "network"]
    table = podium("policy", "list").out.splitlines()
    assert [line.split()[0] for line in table[2:]] == names
    assert [each["name"] for each in json.loads(podium("policy", "list", "-o", "json").out)] == names
    assert "purpose: clusters where pods come and go" in podium("policy", "list", "-o", "yaml").out


def test_a_policy_is_shown_and_verified_as_data(tmp_path: Path) -> None:
    shown = json.loads(podium("policy", "show", "readable", "-o", "json").out)
    assert shown["weights"]["oneGpu"]["price"] == -0.8
    assert "\nname: readable\n" in podium("policy", "show", "readable", "-o", "yaml").out
    verified = json.loads(podium("policy", "verify", "readable", "-o", "json").out)
    assert (verified["usable"], verified["problems"], verified["sha256"]) == (True, [], shown["sha256"])
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps({**shown, "version": "other"}))
    refused = podium("policy", "verify", str(changed), "-o", "yaml")
    assert (refused.code, refused.err) == (1, "")
    assert "usable: false\nproblems:\n- '" in refused.out
    assert "sha256 is not that of the content" in refused.out
