"""A plugin from another package: installed, found by its entry point, configured in YAML, and kept in check.

Everything runs as it would for its author: pip installs the package, and `podium` runs as a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.kit.forked import forked

PYPROJECT = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "rack-plugins"
version = "1.0"

[project.entry-points."podium.plugins"]
Racks = "rack_plugins:Racks"
Youngest = "rack_plugins:Youngest"
Raises = "rack_plugins:Raises"
RaisesAtStart = "rack_plugins:RaisesAtStart"
GivesNaN = "rack_plugins:GivesNaN"
ScoresTooFew = "rack_plugins:ScoresTooFew"
FiltersTooMany = "rack_plugins:FiltersTooMany"
ScoresTooHigh = "rack_plugins:ScoresTooHigh"
AnswersInWords = "rack_plugins:AnswersInWords"

[tool.setuptools]
py-modules = ["rack_plugins"]
"""

PLUGINS = '''
import msgspec
import numpy as np

from podium import (Cycle, NodeInfo, Nodes, Plugin, Status, DependsOn, NodePart)


class RacksArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Racks that take no pods, and the one that is liked best."""

    closed_racks: list[str] = []
    best_rack: str = ""


class Racks(Plugin):
    Args = RacksArgs
    depends_on = DependsOn(node=NodePart.OBJECT)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        rack = node.labels.get("rack", "")
        return Status.unresolvable(f"rack {rack} is closed") if rack in self.args.closed_racks else None

    def score(self, cycle: Cycle, nodes: Nodes) -> np.ndarray:
        return np.where(nodes.label_is("rack", self.args.best_rack), 100, 10)


class Youngest(Plugin):
    def less(self, a, b):
        return a.pod.uid > b.pod.uid


class Raises(Plugin):
    def filter_node(self, cycle, node):
        raise LookupError("the rack has no door")


class RaisesAtStart(Plugin):
    def __init__(self, args, handle):
        raise LookupError("the rack has no door")

    def score_node(self, cycle, node):
        return 0


class GivesNaN(Plugin):
    def score(self, cycle, nodes):
        return np.full(len(nodes), np.nan)


class ScoresTooFew(Plugin):
    def score(self, cycle, nodes):
        return np.zeros(len(nodes) - 1, dtype=np.int64)


class FiltersTooMany(Plugin):
    def filter(self, cycle, nodes):
        return np.ones(len(nodes) + 1, dtype=bool)


class ScoresTooHigh(Plugin):
    def score_node(self, cycle, node):
        return 101


class AnswersInWords(Plugin):
    def score_node(self, cycle, node):
        return "very good"
'''

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {rack: red}}
spec: {taints: [{key: maintenance, effect: NoSchedule}]}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {rack: red}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: n3, labels: {rack: green}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: n4, labels: {rack: blue}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: nginx}]}
"""

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = "pluginConfig: [{name: Racks, args: {closedRacks: [red], bestRack: blue}}]"


class Installed:
    """The package in a folder of its own, and `podium` as it runs with that folder on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = folder / "source"
        source.mkdir()
        (source / "pyproject.toml").write_text(PYPROJECT)
        (source / "rack_plugins.py").write_text(PLUGINS)
        (folder / "cluster.yaml").write_text(CLUSTER)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--target", str(folder / "site"), str(source)], check=True)

    def podium(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return forked(*arguments, cwd=self.folder, env={**os.environ, "PYTHONPATH": str(self.folder / "site")})

    def explain(self, profile: str) -> "subprocess.CompletedProcess[str]":
        (self.folder / "scheduler.yaml").write_text(f"{HEADER}profiles: [{{{profile}}}]\n")
        return self.podium("explain", "web", "--from", "cluster.yaml", "--config", "scheduler.yaml", "-o", "json")

    def nodes(self, profile: str) -> dict[str, dict[str, Any]]:
        result = self.explain(profile)
        assert result.stderr == ""
        return {node["name"]: node for node in json.loads(result.stdout)["nodes"]}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("third-party"))


def test_an_installed_plugin_is_listed_with_its_package(installed: Installed) -> None:
    entries = {each["name"]: each for each in json.loads(installed.podium("plugins", "-o", "json").stdout)}
    assert entries["Racks"] == {
        "name": "Racks",
        "points": ["filter", "score"],
        "weight": 1,
        "args": {"closedRacks": [], "bestRack": ""},
        "origin": "rack-plugins",
        "group": "Others",
        "purpose": "",
    }


def test_it_does_nothing_until_a_profile_enables_it(installed: Installed) -> None:
    nodes = installed.nodes("")
    assert nodes["n2"]["feasible"]
    assert "Racks" not in nodes["n2"]["scores"]


def test_it_filters_and_scores_with_its_arguments_and_weight(installed: Installed) -> None:
    nodes = installed.nodes(f"plugins: {{multiPoint: {{enabled: [{{name: Racks, weight: 7}}]}}}}, {ARGS}")
    assert (nodes["n2"]["plugin"], nodes["n2"]["reasons"]) == ("Racks", ["rack red is closed"])
    assert {name: nodes[name]["scores"]["Racks"] for name in ("n3", "n4")} == {"n3": 70, "n4": 700}
    assert nodes["n4"]["total"] - nodes["n3"]["total"] == 630


def test_its_place_in_the_order_decides_who_turns_a_node_away(installed: Installed) -> None:
    """n1 is tainted and in a closed rack. Under multiPoint Racks comes last; named at filter as well, first."""
    last = installed.nodes(f"plugins: {{multiPoint: {{enabled: [{{name: Racks}}]}}}}, {ARGS}")
    assert last["n1"]["plugin"] == "TaintToleration"
    twice = "multiPoint: {enabled: [{name: Racks}]}, filter: {enabled: [{name: Racks}]}"
    first = installed.nodes(f"plugins: {{{twice}}}, {ARGS}")
    assert first["n1"]["plugin"] == "Racks"


def test_it_can_be_enabled_at_one_point_only(installed: Installed) -> None:
    nodes = installed.nodes(f"plugins: {{filter: {{enabled: [{{name: Racks}}]}}}}, {ARGS}")
    assert nodes["n2"]["plugin"] == "Racks"
    assert "Racks" not in nodes["n4"]["scores"]


@pytest.mark.parametrize(
    ("plugin", "sentence"),
    [
        (
            "Raises",
            'running "Raises" filter plugin: LookupError: the rack has no door',
        ),
        (
            "GivesNaN",
            'running Score plugins: plugin "GivesNaN" failed with: '
            "score must give a whole number for each of 3 nodes, got NaN or infinity",
        ),
        (
            "ScoresTooFew",
            'running Score plugins: plugin "ScoresTooFew" failed with: '
            "score must give a whole number for each of 3 nodes, got int64 of shape (2,)",
        ),
        (
            "FiltersTooMany",
            'running "FiltersTooMany" filter plugin: '
            "filter must give None, a Verdict, or a bool for each of 4 nodes, got bool of shape (5,)",
        ),
        (
            "ScoresTooHigh",
            "applying score defaultWeights on Score plugins: "
            'plugin "ScoresTooHigh" returns an invalid score 101, it should in the range of [0, 100] after normalizing',
        ),
        (
            "AnswersInWords",
            'running Score plugins: plugin "AnswersInWords" failed with: '
            "score_node must give a whole number, got 'very good' (str)",
        ),
    ],
)
def test_a_broken_plugin_is_named_in_one_sentence(plugin: str, sentence: str, installed: Installed) -> None:
    result = installed.explain(f"plugins: {{multiPoint: {{enabled: [{{name: {plugin}}}]}}}}")
    hint = "-v shows where it failed\n" if plugin == "Raises" else ""
    assert (result.returncode, result.stderr) == (1, hint)
    answer = json.loads(result.stdout)
    assert (answer["selected"], answer["nodes"], answer["message"]) == (None, [], sentence)


def test_a_plugin_that_fails_at_the_start_is_named_with_its_line(installed: Installed) -> None:
    result = installed.explain("plugins: {multiPoint: {enabled: [{name: RaisesAtStart}]}}")
    sentence = 'initializing plugin "RaisesAtStart": LookupError: the rack has no door (rack_plugins.py:39)\n'
    assert (result.returncode, result.stdout, result.stderr) == (2, "", sentence)


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        (
            "pluginConfig: [{name: Racks, args: {closedRack: [red]}}]",
            'unknown field "closedRack" (did you mean closedRacks?)',
        ),
        (
            "pluginConfig: [{name: Racks, args: {closedRacks: red}}]",
            "scheduler.yaml:3: profiles[0].pluginConfig[0].args.closedRacks: ",
        ),
        (
            "plugins: {queueSort: {enabled: [{name: PrioritySort}, {name: Youngest}]}}",
            "scheduler.yaml:3: profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can",
        ),
        (
            "plugins: {multiPoint: {enabled: [{name: Youngest}]}}",
            "scheduler.yaml:3: profiles[0].plugins.queueSort: only one queue sort plugin",
        ),
        (
            "plugins: {permit: {enabled: [{name: Racks}]}}",
            'scheduler.yaml:3: profiles[0].plugins.permit.enabled[0]: plugin "Racks" does not extend PermitPlugin',
        ),
    ],
)
def test_a_mistake_in_its_configuration_has_its_place(profile: str, sentence: str, installed: Installed) -> None:
    result = installed.explain(profile)
    assert (result.returncode, result.stdout) == (2, "")
    assert sentence in result.stderr.splitlines()[0]
    assert "Traceback" not in result.stderr


def test_two_packages_cannot_bring_a_plugin_of_the_same_name(installed: Installed) -> None:
    (installed.folder / "twins.py").write_text(
        "from podium import Plugin\nclass Racks(Plugin):\n    def permit(self, cycle, node): ...\n"
    )
    result = installed.podium("plugins", "--plugin", "twins:Racks")
    assert result.returncode == 2
    assert result.stderr == (
        '--plugin twins:Racks: a plugin named "Racks" exists already; '
        f"it is that of {installed.folder / 'site' / 'rack_plugins.py'}: set another name, or uninstall that one\n"
    )
