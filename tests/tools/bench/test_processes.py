"""A workload in a process of its own, and the commands that ask for it."""

from __future__ import annotations

from pathlib import Path
from time import sleep

import msgspec
import pytest

from podium.cli import main
from podium.config import default_config, load_config
from podium.config.points import Point
from podium.plugins import load_registry
from tools.bench.cost import measure_cost
from tools.bench.processes import (
    WorkloadFailedError,
    WorkloadRequest,
    measure,
    measure_in_turns,
    request_for,
    without_plugin,
)
from tools.bench.runner import run_workload
from tools.bench.suite import by_name

EXAMPLES = Path(__file__).parents[3] / "examples" / "config"
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
        measure(WorkloadRequest("No/such", {}))


@pytest.mark.long
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


@pytest.mark.long
def test_growth_measures_every_case_at_every_size(capsys: pytest.CaptureFixture[str]) -> None:
    podium("bench", "growth", "--nodes", "5,10", "--pods", "5", "--json")
    found = msgspec.json.decode(capsys.readouterr().out)["workloads"]
    assert [each["workload"] for each in found] == ["SchedulingBasic", "TopologySpreading", "AllDifferent"]
    assert all([point["nodes"] for point in each["points"]] == [5, 10] for each in found)


@pytest.mark.long
def test_workloads_in_turns_are_the_same_workloads() -> None:
    small, large = (request_for(BASIC.at(20).with_sizes({"measured": pods})) for pods in (150, 420))
    found = measure_in_turns([small, large])
    assert [(each.pods, each.scheduled) for each in found] == [(150, 150), (420, 420)]


def test_waiting_for_a_turn_is_not_part_of_what_a_workload_took() -> None:
    registry, turns = load_registry(), 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        sleep(0.3)

    workload = BASIC.at(20).with_sizes({"measured": 250})
    found = run_workload(workload, default_config(registry), registry, turn=turn)
    assert turns == 3  # of a hundred pods each
    assert found.pods / found.pods_per_s < 0.9


@pytest.mark.long
def test_of_workloads_in_turns_one_may_fail() -> None:
    with pytest.raises(WorkloadFailedError, match=r"^No/such: "):
        measure_in_turns([request_for(BASIC.at(10)), WorkloadRequest("No/such", {})])


def test_a_plugin_is_left_out_of_every_profile() -> None:
    config = load_config(SAMPLED, "sampled.yaml", load_registry()).config
    left = without_plugin(config, "NodeResourcesFit")
    assert all("NodeResourcesFit" not in names for names in left.profiles[0].plugins.values())
    before = {point: names for point, names in config.profiles[0].plugins.items() if "NodeResourcesFit" in names}
    assert set(before) == {"preFilter", "filter", "preScore", "score", "placementScore"}
    for point, names in before.items():
        assert left.profiles[0].plugins[point] == tuple(name for name in names if name != "NodeResourcesFit")


def test_a_queue_without_its_plugin_is_sorted_by_priority() -> None:
    registry = load_registry()
    text = (EXAMPLES / "qos-sort.yaml").read_text()
    config = load_config(text, "qos-sort.yaml", registry).config
    left = without_plugin(config, "QOSSort").profiles[0]
    assert left.plugins[Point.QUEUE_SORT] == ("PrioritySort",)


@pytest.mark.long
def test_what_a_plugin_costs() -> None:
    found = measure_cost("ImageLocality", request_for(BASIC.at(10).with_sizes({"measured": 20})), rounds=2)
    assert (found.plugin, found.workload, found.nodes, len(found.rounds)) == ("ImageLocality", BASIC.name, 10, 2)
    assert all(each.ratio == round(each.with_us / each.without_us, 3) for each in found.rounds)
    assert all(each.bare_us == each.with_us for each in found.rounds), "no configuration: it is the bare profile itself"


@pytest.mark.long
def test_what_a_plugin_costs_is_compared_with_the_bare_profile() -> None:
    config = (EXAMPLES / "qos-sort.yaml").read_text(), "qos-sort.yaml"
    request = request_for(BASIC.at(10).with_sizes({"measured": 20}), config)
    (found,) = measure_cost("QOSSort", request, rounds=1).rounds
    assert found.bare_us != found.with_us
    assert found.ratio_to_bare == round(found.with_us / found.bare_us, 3)


@pytest.mark.long
def test_the_cost_of_a_plugin_for_people(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    podium("bench", "cost", "ImageLocality", "--nodes", "10", "--rounds", "1")
    heading, _, row = capsys.readouterr().out.strip().splitlines()
    bare = ["bare", "ratio", "to", "bare"]
    assert heading.split() == ["plugin", "workload", "nodes", "p50", "µs", "without", "with", "ratio", *bare]
    assert row.split()[:3] == ["ImageLocality", BASIC.name, "10"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("scheduler-perf", "--workload", "Nope"), 'no workload matches "Nope"; the cases are'),
        (("scheduler-perf", "--compare", "CONFIG"), "not a saved run"),
        (("cost", "Nope"), 'there is no plugin "Nope"'),
        (("cost", "Peaks"), 'plugin "Peaks" is not enabled in the default profile'),
        (("cost", "Peaks", "--config", "CONFIG"), 'plugin "Peaks" is not enabled in '),
        (("cost", "ImageLocality", "--workload", "Nope"), 'no workload matches "Nope"'),
        (("growth", "--nodes", "5"), "write --nodes 1000,5000"),
        (("growth", "--nodes", "5,ten"), "write a number of nodes from 1 on"),
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
