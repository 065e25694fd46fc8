"""Podium decides as the kube-schedulers that are not built here once did."""

from pathlib import Path

import pytest

from tools.parity.case import Case, Decision
from tools.parity.compare import judge
from tools.parity.recording import read_recording, recording_of, write_recording

SAMPLE = 25
EQUAL = {"1.36": 2000, "1.35": 2000}
"""How many of the recorded decisions each minor has."""


def wrong(case: Case) -> list[str]:
    return [f"{case.name}: {line}" for line in judge(case)[1]]


@pytest.mark.parametrize("minor", EQUAL)
def test_a_sample_of_what_was_recorded_is_decided_the_same(minor: str) -> None:
    cases = read_recording(recording_of(minor))
    assert len(cases) == EQUAL[minor]
    assert [line for case in cases[:: len(cases) // SAMPLE] for line in wrong(case)] == []


@pytest.mark.long
@pytest.mark.parametrize("minor", EQUAL)
def test_all_that_was_recorded_is_decided_the_same(minor: str) -> None:
    assert [line for case in read_recording(recording_of(minor)) for line in wrong(case)] == []


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "0b5c", "resourceVersion": "7"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}}
    decision = Decision("bound", node="n", totals={"n": 3, "a": 1})
    cases = [Case(f"0-{number}", "nodes", [node], pod, {"x": 1}, 2, decision, "1.35") for number in range(3)]
    path = tmp_path / "1.35.json.xz"
    write_recording(path, cases, "v1.35.4", "python -m tools.parity --record")
    found = read_recording(path)
    assert [each.decision for each in found] == [decision] * 3
    assert list(found[0].decision.totals) == ["n", "a"]
    assert found[0].kubernetes == "1.35"
    assert found[0].objects == [{**node, "metadata": {"name": "n", "uid": "0b5c"}}]
