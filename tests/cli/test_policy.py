"""`podium policy report` on files that are logs, and on files that are not."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import podium


def test_a_file_without_decisions_is_no_log(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text("- 1\n- 2\n")
    ran = podium("policy", "report", str(log))
    assert (ran.code, ran.out) == (2, "")
    assert "no line is a decision" in ran.err
    log.write_text("")
    assert podium("policy", "report", str(log)).code == 1


def test_few_decisions_are_not_enough(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text('{"pod": "default/a", "source": "model", "node": "n1"}\n')
    ran = podium("policy", "report", str(log))
    assert ran.code == 1
    assert "decided by model: 1" in ran.out
