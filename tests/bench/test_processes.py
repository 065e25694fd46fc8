"""A workload in a process of its own, and the commands that ask for it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from podium.bench.processes import Request, WorkloadFailedError, measure, request_for
from podium.bench.suite import by_name
from podium.cli import main

BASIC = by_name("SchedulingBasic/5000Nodes_10000Pods")
SAMPLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 10
"""


def podium(*words: str, expect: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == expect


def test_the_child_measures_what_was_asked_and_says_where_it_is() -> None:
    phases: list[str] = []
    result = measure(request_for(BASIC.at(10).with_sizes({"measured": 7})), phases.append)
    assert (result.workload, result.nodes, result.pods, result.scheduled) == (BASIC.name, 10, 7, 7)
    assert result.peak_mb > 10
    assert phases == ["preparing", "filling the cluster", "measuring"]


def test_the_child_uses_the_configuration() -> None:
    result = measure(request_for(BASIC.at(200).with_sizes({"measured": 3}), (SAMPLED, "sampled.yaml")))
    assert (result.nodes, result.nodes_scored) == (200, 100)


def test_a_child_that_fails_says_why() -> None:
    with pytest.raises(WorkloadFailedError, match=r"^No/such: .*StopIteration"):
        measure(Request("No/such", {}))


def test_json_for_programs_and_comparison_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    podium("bench", "scheduler-perf", "--workload", "SchedulingBasic/*_10000Pods", "--nodes", "10", "--json")
    text = capsys.readouterr().out
    assert [each["workload"] for each in msgspec.json.decode(text)["workloads"]] == [BASIC.name]
    saved = tmp_path / "run.json"
    saved.write_text(text)
    podium("bench", "scheduler-perf", "--workload", BASIC.name, "--nodes", "10", "--compare", str(saved))
    shown = capsys.readouterr().out
    assert "Since the saved run" in shown
    assert "pods_per_s" in shown


def test_growth_measures_every_case_at_every_size(capsys: pytest.CaptureFixture[str]) -> None:
    podium("bench", "growth", "--nodes", "5", "--nodes", "10", "--pods", "5", "--json")
    found = msgspec.json.decode(capsys.readouterr().out)["workloads"]
    assert [each["workload"] for each in found] == ["SchedulingBasic", "TopologySpreading", "AllDifferent"]
    assert all([point["nodes"] for point in each["points"]] == [5, 10] for each in found)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("scheduler-perf", "--workload", "Nope"), 'no workload matches "Nope"; the cases are'),
        (("scheduler-perf", "--compare", "CONFIG"), "not a saved run"),
        (("growth", "--nodes", "5"), "give --nodes twice"),
        (("growth", "--compare", "CONFIG"), "save one with podium bench growth --json"),
    ],
)
def test_bad_input_ends_in_one_sentence(
    words: tuple[str, ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SAMPLED)
    podium("bench", *(str(config) if word == "CONFIG" else word for word in words), expect=2)
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
