"""Everything that a run would stumble over, or drop in silence, is a mistake of the scenario, with its place."""

from __future__ import annotations

import re

import pytest

from podium_lab.simulator import Scenario, ScenarioError, simulate
from podium_lab.simulator.scenario import Generated, NodeGroup, PodSource
from podium_lab.simulator.sweep import check_files, plan
from tests.podium_lab.simulator.scenarios import loaded

NODES = "nodes: {count: 3, allocatable: {cpu: 4}}\n"
WORK = "workload: {generate: {count: 9, shapes: [{requests: {cpu: 1}}]}}\n"
BOTH = NODES + WORK
JOIN = "faults: [{kind: join, group: {count: 2, name: 'new-{index}', allocatable: {cpu: 4}}, %s}]\n"


def nodes(more: str) -> str:
    return NODES.replace("count: 3", f"count: 3, {more}")


def work(generate: str) -> str:
    return f"{NODES}workload: {{generate: {{count: 9, {generate}}}}}\n"


def shape(of: str) -> str:
    return work(f"shapes: [{{{of}}}]")


MISTAKES = [
    # amounts that vary
    (
        shape("requests: {cpu: {uniform: [2, 1]}}"),
        r"2:\d+: \S+\.requests\.cpu\.uniform: expected the smaller .* 2 before",
    ),
    (work("lifetime: {uniform: [5m, 1m]}"), r"lifetime\.uniform: expected the smaller amount first, got 5m before 1m"),
    (shape("requests: {cpu: {uniform: [1]}}"), r"shapes\[0\]\.requests\.cpu\.uniform: .*expected a list of length 2$"),
    (
        shape("requests: {cpu: {lognormal: [1, x]}}"),
        r"requests\.cpu\.lognormal\[1\]: Invalid value: \"x\": expected a num",
    ),
    (shape("requests: {cpu: {lognormal: [1, 900]}}"), r"cpu\.lognormal: expected a deviation from 0 to 10, got 900"),
    (shape("requests: {cpu: {lognormal: [1, -1]}}"), r"cpu\.lognormal: expected a deviation from 0"),
    (
        shape("requests: {cpu: {gamma: [1]}}"),
        r"requests\.cpu\.gamma: there is no \"gamma\", expected exactly one of uniform, exponential, .*, choice$",
    ),
    (
        shape("requests: {cpu: {choice: {'1': -1, '2': 2}}}"),
        r"cpu\.choice: expected amounts with weights of 0 and more",
    ),
    (shape("requests: {cpu: {choice: {'1': .nan}}}"), r"cpu\.choice\.1: .*expected a number$"),
    (shape("requests: {cpu: 1e300}"), r"requests\.cpu: expected an amount of at most"),
    (shape("weight: .inf"), r"weight: .*expected a number$"),
    (shape("weight: 1.0e+308}, {weight: 1.0e+308"), r"shapes: expected at least one shape with a weight above 0"),
    (work("start: -5s"), r"generate\.start: expected a time of 0 or more, got -5s"),
    (BOTH + "decision: -1s\n", r"3:1: decision: expected a time of 0 or more"),
    (BOTH + "duration: 0s\n", r"duration: must be longer than nothing"),
    # enumerations
    (BOTH + "faults: [{kind: explode}]\n", r"faults\[0\]\.kind: .*expected one of fail, drain, leave, join$"),
    (BOTH + "evicted: never\n", r"3:1: evicted: .*expected one of restart, resume, lost$"),
    # what Kubernetes would refuse
    (shape("requests: {cpus: 1}"), r"requests\.cpus: no resource is called \"cpus\"; .*\(did you mean cpu\?\)"),
    (shape("requests: {cpu: 2}, limits: {cpu: 1}"), r"requests: .*must be less than or equal to cpu limit"),
    (shape("labels: {a b: c}"), r"shapes\[0\]\.labels: .*name part must consist of"),
    (shape("spec: {nodeSelectr: {a: b}}"), r"spec\.nodeSelectr: unknown field .*did you mean nodeSelector\?"),
    (shape("spec: {tolerations: [{key: a, operator: Is}]}"), r"spec\.tolerations\[0\]\.operator: .*\"Is\""),
    (shape("priority: 99999999999"), r"priority: expected a number of 32 bits"),
    (work("name: Pod"), r"generate\.name: \"Pod\": a lowercase RFC 1123 subdomain"),
    (work("namespace: a_b"), r"generate\.namespace: \"a_b\": a lowercase RFC 1123 label"),
    (NODES.replace("cpu", "cpus") + WORK, r"nodes\.allocatable\.cpus: no resource is called \"cpus\""),
    (nodes("name: 'N{index}'") + WORK, r"nodes\.name: \"N{index}\": a lowercase RFC"),
    (nodes("labels: {a: b c}") + WORK, r"nodes\.labels: .*\"b c\""),
    (nodes("taints: [{key: a, effect: Not}]") + WORK, r"taints\[0\]\.effect: .*\"Not\""),
    (
        nodes("taints: [{key: a, effect: NoSchedule, vaule: b}]") + WORK,
        r"taints\[0\]\.vaule: .*did you mean value",
    ),
    # fields that nothing would read
    ("nodes: {openb: a.csv, labels: {a: b}}\n" + WORK, r"nodes\.labels: only a group with a count has it"),
    (BOTH + JOIN % "lasts: 5m", r"faults\[0\]\.lasts: only fail, drain or leave has it"),
    (BOTH + "faults: [{kind: drain, evictAfter: 1m}]\n", r"faults\[0\]\.evictAfter: only fail has it"),
    (BOTH + "summaryAt: [50]\n", r"summaryAt: .*needs checkpoints\.arrivedPct"),
    (BOTH + "checkpoints: {every: 1m, arrivedPct: 5}\n", r"checkpoints: expected every or arrivedPct, not both"),
    # figures and measurements
    (BOTH + "summary: [placed, wait]\n", r"3:\d+: summary\[1\]: there is no figure \"wait\" \("),
    (BOTH + "summary: [wait_p59_s]\n", r"there is no figure \"wait_p59_s\" \(did you mean wait_p99_s\?\)"),
    (BOTH + "usage: {unrequested: {cpu: x}}\n", r"usage\.unrequested\.cpu: expected a quantity"),
    (BOTH + "usage: {unrequested: {gpu: 1}}\n", r"usage\.unrequested\.gpu: expected cpu or memory"),
    (BOTH + "usage: {interval: 1ms, window: 1h}\n", r"usage\.window: at most 100,000 measurements fit into it"),
    (BOTH + "usage: {interval: 1ns, window: 1ms}\n", r"usage\.interval: must be 1ms or longer"),
    (BOTH + "checkpoints: {every: 1ns}\n", r"checkpoints\.every: must be 1ms or longer"),
    (BOTH + "seeds: 9999999999999999\n", r"seeds: .*a seed is at most"),
    ("nodes: {count: 3, allocatable: {cpu: 4}}\nworkload: []\n", r"workload: expected at least one workload"),
    # faults
    (BOTH + "faults: [{kind: fail, every: 0s}]\n", r"faults\[0\]\.every: must be 1ms or longer"),
    (
        BOTH + "faults: [{kind: join, every: 1m, group: {count: 1, name: a, allocatable: {cpu: 4}}}]\n",
        r"group\.name: \"a\" joins again and again; write {index} into it",
    ),
    (
        BOTH + "faults: [{kind: fail, nodes: 'nothing-*'}]\n",
        r"3:\d+: faults\[0\]\.nodes: no node is called \"nothing-\*\"; there are node-0, node-1, node-2$",
    ),
    (
        BOTH + "faults: [{kind: join, group: {count: 2, allocatable: {cpu: 4}}}]\n",
        r"faults\[0\]\.group\.name: \"node-0\" is there already",
    ),
    (
        "nodes: [{count: 2, name: 'a-{index}', allocatable: {cpu: 4}}, {count: 1, name: a-1, allocatable: {cpu: 4}}]\n"
        + WORK,
        r"1:\d+: nodes\[1\]: two nodes are called \"a-1\"",
    ),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_a_mistake_has_its_place_and_says_what_is_expected(text: str, expected: str) -> None:
    with pytest.raises(ScenarioError) as found:
        plan(loaded(text), None, None)
    assert len(found.value.mistakes) == 1, str(found.value)
    assert re.search(expected, str(found.value)), str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        shape("requests: {cpu: {uniform: [1, 1]}, nvidia.com/gpu: 1}, labels: {app: web}"),
        shape("requests: {cpu: {uniform: [1, 4]}}, limits: {cpu: 2}"),
        shape("spec: {tolerations: [{operator: Exists}], nodeSelector: {a: b}, priorityClassName: high}"),
        BOTH + JOIN % "every: 1h" + "  \n",
        (BOTH + JOIN % "every: 1h").replace("}]\n", "}, {kind: fail, nodes: new-7}]\n"),
        BOTH + "usage: {level: {lognormal: [0.5, 0.2]}}\nsummary: [unplaced, cpu_utilisation_pct]\n",
        "nodes: {count: 2, zones: 2, labels: {zone: 'z{zone}'}, taints: [{key: a, effect: NoSchedule}], "
        "allocatable: {cpu: 4, example.com/dongle: 2, hugepages-2Mi: 4Mi}}\n" + WORK,
    ],
)
def test_what_is_right_is_taken(text: str) -> None:
    planned = plan(loaded(text), None, None)
    assert check_files(planned)[0] == "9 pods"


def test_a_scenario_made_in_python_is_checked_too() -> None:
    group = NodeGroup(count=2, allocatable={"cpu": 1})
    pods = PodSource(generate=Generated(count=1, lifetime="soon"))
    with pytest.raises(ScenarioError, match=r"^workload\.generate\.lifetime: expected a duration"):
        simulate(Scenario(nodes=group, workload=pods))


def test_a_run_whose_checkpoints_are_never_reached_has_its_last_row() -> None:
    results = simulate(loaded(BOTH + "checkpoints: {arrivedPct: 70}\n"))
    assert results["arrived"].tolist() == [9]


def test_a_profile_that_changes_nothing_is_remarked_on() -> None:
    few = plan(loaded(BOTH + "profiles: [{name: few, profile: {percentageOfNodesToScore: 10}}]\n"), None, None)
    assert few.oddities == ('profile "few": percentageOfNodesToScore changes nothing below 101 nodes',)
    unread = "profiles: [{name: a, profile: {pluginConfig: [{name: NodeResourceFit, args: {}}]}}]\n"
    (said,) = plan(loaded(BOTH + unread), None, None).oddities
    assert re.match(r"scenario\.yaml:3:\d+: profiles\[0\]\.profile\.pluginConfig.*did you mean NodeResourcesFit", said)
