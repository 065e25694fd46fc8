import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from podium import packages
from podium.cli.catalog import OTHERS, group_of
from podium.cluster import Nodes
from podium.config.field import FieldPath
from podium.framework import Cycle, PluginError
from tests.podium.cli.command import podium
from tests.podium.cli.texts import write
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

MINE = """
import msgspec
from podium import Plugin

class Args(msgspec.Struct, rename="camel"):
    only_on: str
    how_often: int = 3

class Mine(Plugin):
    Args = Args
    def filter_node(self, cycle, node): return True
    def less(self, a, b): return False
"""


NO_NAME = "cannot name a plugin; write letters and digits, a letter first, like QuietNodes or quiet-nodes"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_in_tree_plugin_is_listed_in_running_order() -> None:
    ran = podium("plugins", "-o", "json")
    assert ran.code == 0
    entries = json.loads(ran.out)
    assert [each["name"] for each in entries if each["origin"] == "in-tree"] == list(packages.plugins())
    assert all(each["points"] for each in entries)


def test_the_list_is_there_as_yaml_too() -> None:
    assert yaml.safe_load(podium("plugins", "-o", "yaml").out) == json.loads(podium("plugins", "-o", "json").out)


@pytest.mark.parametrize(
    ("name", "points", "weight", "args"),
    [
        ("TaintToleration", ["filter", "preScore", "score"], 3, {}),
        ("ImageLocality", ["score"], 1, {}),
        ("PrioritySort", ["queueSort"], None, {}),
        (
            "InterPodAffinity",
            ["preFilter", "filter", "preScore", "score"],
            2,
            {
                "hardPodAffinityWeight": 1,
                "ignorePreferredTermsOfExistingPods": False,
            },
        ),
    ],
)
def test_an_entry_has_points_default_weight_and_arguments(
    name: str, points: list[str], weight: int | None, args: dict[str, object]
) -> None:
    entries = {each["name"]: each for each in json.loads(podium("plugins", "-o", "json").out)}
    expected = {"name": name, "points": points, "weight": weight, "args": args, "origin": "in-tree"}
    assert entries[name] == {**expected, "group": group_of(name), "purpose": packages.plugins()[name].purpose}


def test_the_table_has_a_row_for_each_plugin() -> None:
    out = podium("plugins", "-o", "wide").out
    assert [line.split()[0] for line in out.splitlines() if line.endswith("in-tree")] == list(packages.plugins())


def test_a_plugin_in_the_current_folder_is_found(folder: Path) -> None:
    write(folder, "mine_in_the_folder.py", MINE)
    ran = podium("plugins", "--plugin", "mine_in_the_folder:Mine", "-o", "json")
    assert json.loads(ran.out)[-1] == {
        "name": "Mine",
        "points": ["queueSort", "filter"],
        "weight": None,
        "args": {"onlyOn": "(required)", "howOften": 3},
        "origin": "--plugin",
        "group": OTHERS,
        "purpose": "",
    }


def test_a_plugin_may_be_given_by_its_file(folder: Path) -> None:
    write(
        folder, "two_of_mine.py", MINE + MINE.replace("Mine", "Other").replace("Args", "OtherArgs") + "Alias = Mine\n"
    )
    ran = podium("plugins", "--plugin", "two_of_mine.py", "-o", "json")
    assert [each["name"] for each in json.loads(ran.out)[-2:]] == ["Mine", "Other"]
    ran = podium("plugins", "--plugin", str(folder / "two_of_mine.py:Other"), "-o", "json")
    assert [each["name"] for each in json.loads(ran.out) if each["origin"] == "--plugin"] == ["Other"]


CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: only}
status: {allocatable: {cpu: "4", pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: web, image: nginx}]}
"""


def test_a_plugin_that_is_named_without_a_configuration_is_enabled(folder: Path) -> None:
    write(folder, "cluster.yaml", CLUSTER)
    write(
        folder,
        "refuses.py",
        "from podium import Plugin\n"
        "class Refuses(Plugin):\n"
        "    def filter_node(self, cycle, node):\n"
        "        return 'node(s) were refused'\n",
    )
    asked = ("explain", "shop/web", "--from", "cluster.yaml")
    assert podium(*asked).out.startswith("shop/web fits: goes to only")
    ran = podium(*asked, "--plugin", "refuses.py")
    assert ran.out.startswith("shop/web fits nowhere: 0/1 nodes are available: 1 node(s) were refused."), ran.err
    write(folder, "mine_with_arguments.py", MINE)
    ran = podium(*asked, "--plugin", "mine_with_arguments.py")
    assert (ran.code, ran.out) == (2, "")
    assert 'initializing plugin "Mine": Object missing required field `onlyOn`' in ran.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import podium\n\nraise LookupError('no door')\n", "line 3: LookupError: no door"),
        ("from podium import Plugin\nclass (:\n", "line 2: SyntaxError: "),
        ("from podium import Plugin\n", "it has no plugin; derive a class from podium.Plugin"),
        (None, "mine.py cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence(text: str | None, sentence: str, folder: Path) -> None:
    if text is not None:
        write(folder, "mine.py", text)
    ran = podium("plugins", "--plugin", "mine.py")
    assert ran.code == 2
    assert ran.err.startswith(f"--plugin mine.py: {sentence}")
    assert ran.err.count("\n") == 1


def test_new_writes_a_package_whose_test_passes(folder: Path) -> None:
    ran = podium("plugins", "new", "QuietNodes")
    assert (ran.code, ran.err) == (0, "")
    assert "    cd quiet-nodes\n" in ran.out
    package = folder / "quiet-nodes"
    assert sorted(str(each.relative_to(package)) for each in package.rglob("*") if each.is_file()) == [
        "pyproject.toml",
        "scheduler.yaml",
        "src/quiet_nodes.py",
        "tests/test_quiet_nodes.py",
    ]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=package,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 passed" in result.stdout


@pytest.mark.long
def test_the_test_that_new_writes_can_fail(folder: Path) -> None:
    podium("plugins", "new", "QuietNodes")
    plugin = folder / "quiet-nodes" / "src" / "quiet_nodes.py"
    plugin.write_text(plugin.read_text().replace("100 if", "0 if"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    assert subprocess.run(command, cwd=folder / "quiet-nodes", capture_output=True, check=False).returncode == 1


@pytest.mark.long
def test_new_writes_an_agent_that_installs_and_whose_test_passes(folder: Path) -> None:
    ran = podium("plugins", "new", "CalmNodes", "--agent")
    assert (ran.code, ran.err) == (0, "")
    assert "    podium extender --agents CalmNodes " in ran.out
    package = folder / "calm-nodes"
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(test, cwd=package, capture_output=True, text=True, check=False)
    assert "1 passed" in result.stdout, result.stdout + result.stderr
    source = (package / "src" / "calm_nodes.py").read_text()
    assert "CALM_NODES_POINTS" in source

    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(package)], check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "site"), *sys.path])}
    for file in ("scheduler.yaml", "kube-scheduler.yaml"):
        command = [sys.executable, "-m", "podium", "check", str(package / file)]
        checked = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")

    plugin = package / "src" / "calm_nodes.py"
    plugin.write_text(plugin.read_text().replace("SCORE_PER_POINT = 10", "SCORE_PER_POINT = 9"))
    assert subprocess.run(test, cwd=package, capture_output=True, check=False).returncode == 1


def test_points_of_a_new_agent_come_from_the_environment_too_and_have_limits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    podium("plugins", "new", "CalmNodes", "--agent")
    written = runpy.run_path(str(folder / "calm-nodes" / "src" / "calm_nodes.py"), run_name="calm_nodes")
    agent = written["CalmNodes"]
    cluster = make_cluster([make_node("a")])
    cycle, info = Cycle(make_pod(), cluster), Nodes(cluster).info(0)
    monkeypatch.setenv("CALM_NODES_POINTS", "7")
    assert make_plugin(agent, cluster).score_node(cycle, info) == 70
    assert make_plugin(agent, cluster, points=0).score_node(cycle, info) == 0
    monkeypatch.setenv("CALM_NODES_POINTS", "11")
    with pytest.raises(PluginError, match="CALM_NODES_POINTS: Invalid value: 11: must be from 0 to 10"):
        make_plugin(agent, cluster)
    (error,) = written["CalmNodesArgs"](points=-1).validate(FieldPath())
    assert str(error) == "points: Invalid value: -1: must be from 0 to 10"


def test_new_puts_the_package_where_it_is_told(folder: Path) -> None:
    ran = podium("plugins", "new", "GPUPacker", "--dir", "my plugins")
    assert ran.code == 0
    assert (folder / "my plugins" / "gpu-packer" / "src" / "gpu_packer.py").is_file()
    assert "cd 'my plugins/gpu-packer'" in ran.out


@pytest.mark.parametrize("spelling", ["quiet-nodes", "quiet_nodes", "Quiet Nodes", "quietNodes", "QUIET-nodes"])
def test_new_takes_a_name_in_any_spelling(spelling: str, folder: Path) -> None:
    ran = podium("plugins", "new", spelling)
    assert ran.code == 0, ran.err
    name = "QUIETNodes" if spelling == "QUIET-nodes" else "QuietNodes"
    assert f"class {name}(Plugin):" in (folder / "quiet-nodes" / "src" / "quiet_nodes.py").read_text()


def test_new_overwrites_nothing(folder: Path) -> None:
    podium("plugins", "new", "QuietNodes")
    before = (folder / "quiet-nodes" / "scheduler.yaml").stat().st_mtime_ns
    ran = podium("plugins", "new", "QuietNodes")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "quiet-nodes exists already; give the plugin another name, or choose another --dir\n"
    assert (folder / "quiet-nodes" / "scheduler.yaml").stat().st_mtime_ns == before


@pytest.mark.parametrize("agent", [(), ("--agent",)], ids=["plugin", "agent"])
@pytest.mark.parametrize("name", ["PackagePACKAGE", "MyNAME", "ModuleMODULE", "VariableVARIABLE_x", "A", "X1y2-3"])
def test_new_writes_python_whatever_the_name_holds(name: str, agent: tuple[str, ...], folder: Path) -> None:
    ran = podium("plugins", "new", name, *agent)
    assert ran.code == 0, ran.err
    for file in folder.rglob("*.py"):
        compile(file.read_text(), str(file), "exec")
    (project,) = (tomllib.loads(file.read_text()) for file in folder.rglob("pyproject.toml"))
    ((plugin, where),) = project["project"]["entry-points"]["podium.plugins"].items()
    module, _, attribute = where.partition(":")
    source = next(folder.rglob(f"src/{module}.py")).read_text()
    assert plugin == attribute
    assert f"class {plugin}(" in source
    assert not re.search("NAME|MODULE|PACKAGE|VARIABLE_", source.replace(plugin, "").replace(module.upper(), ""))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("../Up", f'"../Up" {NO_NAME}'),
        ("2Fast", f'"2Fast" {NO_NAME}'),
        ("-", f'"-" {NO_NAME}'),
        ("Größe", f'"Größe" {NO_NAME}'),
        ("node-name", '"NodeName" is taken: kube-scheduler has a plugin of that name; choose another name'),
        ("Lambda", '"Lambda" is taken: "lambda" is a word of the language Python; choose another name'),
        ("Json", '"Json" is taken: a Python module is called "json"; choose another name'),
        ("NodeName", '"NodeName" is taken: kube-scheduler has a plugin of that name; choose another name'),
        *(
            (word, f'"{word}" is taken: the files of the plugin use the word "{word}"; choose another name')
            for word in ("Plugin", "Cycle")
        ),
        ("None", '"None" is taken: "None" is a word of the language Python; choose another name'),
        ("x" * 41, f'"{"x" * 40}…" is too long for a plugin; write at most 40 characters'),
        ("a\x1b[2Jb", f'"a\\x1b[2Jb" {NO_NAME}'),
    ],
)
def test_new_refuses_names_that_would_not_work(name: str, sentence: str, folder: Path) -> None:
    ran = podium("plugins", "new", name)
    assert (ran.code, ran.err) == (2, f"{sentence}\n")
    assert list(folder.iterdir()) == []
