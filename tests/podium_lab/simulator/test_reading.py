"""Scenarios are read strictly, and every mistake has its place."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from podium.config.durations import Duration
from podium_lab.simulator.reading import read_scenario
from podium_lab.simulator.scenario import Generated, PodSource, ScenarioError, scenario_schema
from tests.podium_lab.simulator.scenarios import EXAMPLES, SMALL, loaded

NODES = "nodes: {count: 1, allocatable: {cpu: 1}}\n"
WORK = "workload: {generate: {count: 1}}\n"

MISTAKES = {
    "an unknown field": (NODES + WORK + "sedes: 3\n", r"scenario\.yaml:3:1: sedes: .*did you mean seeds"),
    "a wrong type": (
        NODES + "workload: {generate: {count: many}}\n",
        r"scenario\.yaml:2:23: workload\.generate\.count: ",
    ),
    "no nodes": (WORK, r"scenario\.yaml:1:1: .*nodes"),
    "two origins of nodes": (
        "nodes: {count: 1, file: a, allocatable: {cpu: 1}}\n" + WORK,
        r"scenario\.yaml:1:1: nodes: expected exactly one of count, file, openb, hosts, vmr2l, got count, file",
    ),
    "a node that offers nothing": (
        "nodes: {count: 1}\n" + WORK,
        r"1:\d+: nodes\.allocatable: expected what a node offers",
    ),
    "names that are the same": (
        "nodes: {count: 2, name: a, allocatable: {cpu: 1}}\n" + WORK,
        r"1:19: nodes\.name: .*write \{index\} into it",
    ),
    "no workload": (NODES + "workload: {}\n", r"2:1: workload: expected exactly one of generate, openb"),
    "a time without a unit": (
        NODES + "workload: {generate: {count: 1, interval: soon}}\n",
        r'2:33: workload\.generate\.interval: expected a duration such as "90s" or "5m", got "soon"',
    ),
    "a quantity that is none": (
        NODES + "workload: {generate: {count: 1, shapes: [{requests: {cpu: lots}}]}}\n",
        r"workload\.generate\.shapes\[0\]\.requests\.cpu: expected a quantity",
    ),
    "two distributions": (
        NODES + "workload: {generate: {count: 1, interval: {exponential: 1s, uniform: [1s, 2s]}}}\n",
        r"interval: expected exactly one of .* got uniform, exponential",
    ),
    "profiles of one name": (
        NODES + WORK + "profiles: [{name: a}, {name: a}]\n",
        r'profiles\[1\]\.name: another profile is called "a"',
    ),
    "seeds that are none": (NODES + WORK + "seeds: 5-1\n", r"3:1: seeds: .*smallest first"),
    "a join without nodes": (NODES + WORK + "faults: [{kind: join}]\n", r"faults\[0\]\.group: join needs group"),
    "a field twice": (NODES + WORK + "seeds: 1\nseeds: 2\n", r"4:1: seeds: it is already on line 3"),
    "no YAML": ("nodes: [\n", r"scenario\.yaml:\d+:1: not valid YAML"),
    "no mapping": ("- 1\n", r"scenario\.yaml:1:1: expected a mapping"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_with_file_line_and_column(case: str) -> None:
    text, expected = MISTAKES[case]
    with pytest.raises(ScenarioError) as found:
        loaded(text)
    assert re.search(expected, str(found.value)), str(found.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ScenarioError) as found:
        loaded("nodes: {count: 0}\nworkload: {generate: {}}\nsedes: 1\n")
    assert len(found.value.mistakes) >= 2


def test_a_value_is_overridden_by_its_path_or_by_any_end_of_it() -> None:
    text = SMALL
    for key in ("workload.generate.count", "generate.count"):
        scenario = loaded(text, f"{key}=7").scenario
        assert isinstance(scenario.workload, PodSource)
        assert scenario.workload.generate is not None
        assert scenario.workload.generate.count == 7
    assert loaded(text, "duration=5m").scenario.duration == Duration.parse("5m")
    assert loaded(text, "workload=some.csv").scenario.workload == "some.csv"
    scenario = loaded("nodes: {openb: a}\nworkload: {openb: {list: b}}\n", "list=/other/pods.csv").scenario
    assert isinstance(scenario.workload, PodSource)
    assert scenario.workload.openb is not None
    assert scenario.workload.openb.list == "/other/pods.csv"


def test_an_item_of_a_list_is_overridden_by_its_number() -> None:
    text = "nodes: [{count: 1, allocatable: {cpu: 1}}]\n" + WORK
    nodes = loaded(text, "nodes.0.count=3").scenario.nodes
    assert isinstance(nodes, list)
    assert nodes[0].count == 3


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("nonsense", "write it as KEY=VALUE"),
        ("nonsense=1", 'the scenario has no "nonsense"'),
        ("name=a", None),
        ("count=1", "that may be nodes.count, workload.generate.count; write the whole path"),
        ("nodes.5.count=1", 'there is nothing at "5"'),
        ("generate.count=many", r"--set generate.count=many: workload.generate.count: "),
        ("seeds=[1", "not valid YAML"),
    ],
)
def test_an_override_that_does_not_fit_is_told(override: str, expected: str | None) -> None:
    if expected is None:
        loaded(SMALL, override)
        return
    with pytest.raises(ScenarioError) as found:
        loaded(SMALL, override)
    assert expected in str(found.value)


def test_the_schema_describes_every_field_of_a_scenario() -> None:
    schema = scenario_schema()
    assert {"nodes", "workload", "profiles", "faults", "usage"} <= set(schema["$defs"]["Scenario"]["properties"])
    assert schema["$defs"]["Generated"]["additionalProperties"] is False
    assert set(schema["$defs"]["Generated"]["properties"]) == {
        each.encode_name for each in msgspec.structs.fields(Generated)
    }


@pytest.mark.parametrize(
    "file", [*sorted(EXAMPLES.glob("simulate/*.yaml")), EXAMPLES / "openb.yaml"], ids=lambda f: f.stem
)
def test_the_examples_can_be_read(file: Path) -> None:
    assert read_scenario(str(file)).scenario.name
