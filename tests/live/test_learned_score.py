"""LearnedScore on a real API server: a policy that breaks while it is used costs no pod, and shadow mode reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium.placement.gpu.request import COUNT, INDEX, MILLI, MODEL
from tests.cli.command import podium as podium_cli
from tests.live.crowd import until
from tests.plugins.learned.policies import policy, written
from tests.testbed import Component, ControlPlane
from tests.testbed.apiclient import Object
from tests.testbed.objects import make_node, make_pod

pytestmark = pytest.mark.testbed
GOOD = policy({"F": 1.0, "R1": -0.3})


def config(file: Path, log: Path, **args: Any) -> dict[str, Any]:
    given = {"policy": str(file), "log": str(log), "deadline": "10s", **args}
    return {
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}, {"name": "LearnedScore", "weight": 10}]}},
                "pluginConfig": [{"name": "LearnedScore", "args": given}],
            }
        ]
    }


def create_nodes(plane: ControlPlane) -> None:
    for number in range(4):
        node = make_node(f"gpu-{number}", cpu="32", labels={MODEL: ("T4", "G2")[number % 2]})
        for amounts in (node["status"]["allocatable"], node["status"]["capacity"]):
            amounts[COUNT] = "4"
        plane.client.create(node)


def create_pods(plane: ControlPlane, prefix: str, count: int = 4) -> None:
    for number in range(count):
        pod = make_pod(f"{prefix}-{number}", cpu="1")
        pod["metadata"]["annotations"] = {MILLI: "250"}
        plane.client.create(pod)


def until_placed(plane: ControlPlane, prefix: str, podium: Component, count: int = 4) -> list[Object]:
    def placed() -> list[Object]:
        named = (pod for pod in plane.client.list("Pod") if pod["metadata"]["name"].startswith(prefix))
        return [pod for pod in named if pod["spec"].get("nodeName")]

    until(lambda: len(placed()) == count, f"the pods {prefix} are bound", podium)
    return placed()


def sources(log: Path, prefix: str) -> set[str]:
    lines = (json.loads(line) for line in log.read_text().splitlines())
    return {line["source"] for line in lines if line["pod"].startswith(f"default/{prefix}") and "source" in line}


def test_a_policy_that_breaks_while_running_costs_no_pod(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = empty_control_plane
    file, log = written(tmp_path / "policy.json", GOOD), tmp_path / "decisions.jsonl"
    create_nodes(plane)
    podium = plane.start_podium(config(file, log))
    good = file.read_bytes()
    create_pods(plane, "first")
    assert all(INDEX in pod["metadata"]["annotations"] for pod in until_placed(plane, "first", podium))
    assert sources(log, "first") == {"model"}
    for name, reason, text in (
        ("gone", "no_model", None),
        ("truncated", "schema", good[:100]),
        ("poisoned", "nan", good.replace(b"-0.3", b"NaN")),
    ):
        file.unlink() if text is None else file.write_bytes(text)
        create_pods(plane, name)
        until_placed(plane, name, podium)
        assert sources(log, name) == {reason}
    file.write_bytes(good)
    create_pods(plane, "last")
    until_placed(plane, "last", podium)
    assert sources(log, "last") == {"model"}


def test_shadow_mode_reports_agreement_and_latency(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = empty_control_plane
    file, log = written(tmp_path / "policy.json", GOOD), tmp_path / "decisions.jsonl"
    create_nodes(plane)
    podium = plane.start_podium(config(file, log, mode="shadow"))
    create_pods(plane, "watched", 8)
    until_placed(plane, "watched", podium, 8)
    report = podium_cli("policy", "report", str(log))
    assert report.code == 1
    assert "decided by shadow: 8" in report.out
    assert "compared: 8, same best node" in report.out
    assert "8 decisions are compared, 10,000 are wanted" in report.out
