"""The same files, given to the real kube-scheduler: it must accept and refuse what Podium does, and mean the same.

`--write-config-to` makes kube-scheduler write the configuration it ended up with and leave, once it has built all
profiles; at verbosity 2 it also logs the plugins of every extension point in running order. No cluster is needed.
"""

import ast
import re
import subprocess
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
import yaml
from msgspec.structs import replace

from podium.config import Profile, SchedulerConfig, load_config
from podium.config.points import Point
from podium.config.types import Plugins
from tests.podium.config.cases import (
    ACCEPTED,
    INVALID,
    JSON_KUBE_TEXT,
    JSON_WITH_MISTAKES,
    OTHERWISE_REFUSED,
    STRICT,
    UNBUILDABLE,
    Case,
    random_profile,
)
from tests.podium.config.stand_ins import REGISTRY, config_text
from tools.kit.real_rules import REAL_RULES
from tools.testbed.build import CONTROL_PLANE, programs

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
users: [{name: nobody, user: {}}]
current-context: nowhere
"""

pytestmark = pytest.mark.usefixtures("testbed_programs")


class Answer(NamedTuple):
    """What kube-scheduler said: why it ended, the configuration it wrote, the plugins it logged for each profile."""

    error: str
    written: str
    logged: list[str]


def kube_scheduler(text: str, folder: Path) -> Answer:
    kubeconfig, config, written = folder / "kubeconfig", folder / "config.yaml", folder / "written.yaml"
    kubeconfig.write_text(KUBECONFIG)
    connection = (
        {}
        if "clientConnection" in text or text.startswith("{")
        else {"clientConnection": {"kubeconfig": str(kubeconfig)}}
    )
    config.write_text(text + (yaml.safe_dump(connection) if connection else ""))
    ended = subprocess.run(
        [
            programs(*CONTROL_PLANE)["kube-scheduler"],
            "--config",
            config,
            "--secure-port=0",
            "--write-config-to",
            written,
            "--v=2",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    logged = [line for line in ended.stderr.splitlines() if "the scheduler starts to work with those plugins" in line]
    return Answer(_error(ended.stderr), written.read_text() if written.exists() else "", logged)


def _error(log: str) -> str:
    one_line = re.search(r'"command failed" err=("(?:[^"\\]|\\.)*")', log)
    if one_line:
        return str(ast.literal_eval(one_line[1]))
    lines = re.search(r'"command failed" err=<\n(.*?)\n >', log, re.DOTALL)
    return "\n".join(line.removeprefix("\t") for line in lines[1].splitlines()) if lines else ""


def the_plugins_logged(line: str) -> dict[str, list[tuple[str, int]]]:
    """Reads Go's rendering of the plugin sets: `Score:{Enabled:[{Name:A Weight:3} …] Disabled:[]}`."""
    sets = re.findall(r'"?([A-Z]\w+)"?:\{"?Enabled"?:(?:null|\[(.*?)\]),? ?"?Disabled', line)
    entry = re.compile(r'\{"?Name"?:"?(\w+)"?[ ,]"?Weight"?:(-?\d+)\}')
    read = {f"{name[0].lower()}{name[1:]}": [(n, int(w)) for n, w in entry.findall(body)] for name, body in sets}
    return {point: read[point] for point in Point}


def the_plugins_of(profile: Profile) -> dict[str, list[tuple[str, int]]]:
    weights = {"score": profile.weights, "placementScore": profile.placement_weights}
    return {point: [(name, weights.get(point, {}).get(name, 0)) for name in profile.plugins[point]] for point in Point}


@pytest.mark.parametrize("case", [*STRICT, *INVALID, *UNBUILDABLE], ids=lambda case: case.name)
def test_kube_scheduler_ends_with_the_message_we_say_it_does(case: Case, tmp_path: Path) -> None:
    assert kube_scheduler(config_text(case.body), tmp_path).error == case.kube_text


def test_kube_scheduler_reports_what_it_finds_in_json_in_the_order_of_the_file(tmp_path: Path) -> None:
    assert kube_scheduler(JSON_WITH_MISTAKES, tmp_path).error == JSON_KUBE_TEXT


@pytest.mark.parametrize("case", OTHERWISE_REFUSED, ids=lambda case: case.name)
def test_kube_scheduler_refuses_values_of_the_wrong_kind_too(case: Case, tmp_path: Path) -> None:
    assert kube_scheduler(config_text(case.body), tmp_path).error


@pytest.mark.parametrize("name", ACCEPTED)
def test_kube_scheduler_writes_back_the_configuration_we_read(name: str, tmp_path: Path) -> None:
    text = config_text(ACCEPTED[name].replace("KUBECONFIG", str(tmp_path / "kubeconfig")))
    theirs = kube_scheduler(text, tmp_path)
    assert theirs.error == ""
    ours = load_config(text, "ours", REGISTRY, REAL_RULES).config
    same = load_config(theirs.written, "theirs", REGISTRY, REAL_RULES).config
    assert _comparable(same) == _comparable(ours)
    assert [the_plugins_logged(line) for line in theirs.logged] == [the_plugins_of(p) for p in ours.profiles]


def _comparable(config: SchedulerConfig) -> SchedulerConfig:
    """kube-scheduler writes 0 for an unset percentage or weight, and was given a kubeconfig."""

    def without_sets(profile: Profile) -> Profile:
        return replace(profile, plugin_sets=Plugins())  # compared below as names and weights in running order

    return replace(
        config,
        percentage_of_nodes_to_score=config.percentage_of_nodes_to_score or 0,
        client_connection=replace(config.client_connection, kubeconfig=""),
        profiles=tuple(map(without_sets, config.profiles)),
    )


def test_a_hundred_random_profiles_run_the_same_plugins_in_the_same_order(tmp_path: Path) -> None:
    random = Random(1)
    text = config_text(yaml.safe_dump({"profiles": [random_profile(random, i) for i in range(100)]}))
    ours = load_config(text, "ours", REGISTRY, REAL_RULES).config
    theirs = kube_scheduler(text, tmp_path)
    assert theirs.error == ""
    assert len(theirs.logged) == 100
    for line, profile in zip(theirs.logged, ours.profiles, strict=True):
        assert the_plugins_logged(line) == the_plugins_of(profile), profile.scheduler_name
