"""LearnedScore in earnest, on `podium up` and on a real API server: a policy that breaks while it is used costs no pod,
and shadow mode reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from podium_plugins.gpu.request import COUNT, INDEX, MILLI, MODEL
from tests.podium.cli.command import podium as podium_cli
from tests.podium.run.crowd import until
from tests.podium_cluster.up.up_process import PodiumUp
from tests.podium_lab.learned.policies import policy, written
from tools.testbed import Component
from tools.testbed.apiclient import ApiClient, Object
from tools.testbed.objects import make_node, make_pod

pytestmark = pytest.mark.testbed
GOOD = policy({"F": 1.0, "R1": -0.3})
PLACES = ("embedded cluster", "real API server")


class Served(NamedTuple):
    """A cluster with Podium as its scheduler."""

    client: ApiClient
    components: tuple[Component, ...]


Serve = Callable[[dict[str, Any]], "Any"]


@pytest.fixture(params=PLACES, ids=lambda place: place.replace(" ", "-"))
def serve(request: pytest.FixtureRequest, tmp_path: Path) -> Serve:
    """Starts a cluster, of either sort, that is scheduled with a configuration."""

    @contextmanager
    def embedded(config: dict[str, Any]) -> Iterator[Served]:
        file = tmp_path / "scheduler.yaml"
        head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        file.write_text(yaml.safe_dump({**head, **config}))
        options = ("--port", "0", "--nodes", "0", "--workload", "none", "--config", str(file))
        with PodiumUp(*options, home=tmp_path) as up, ApiClient(up.url, ca_path=None, token="any") as client:
            yield Served(client, ())
            assert "Traceback" not in up.output

    @contextmanager
    def real(config: dict[str, Any]) -> Iterator[Served]:
        plane = request.getfixturevalue("empty_control_plane")
        yield Served(plane.client, (plane.start_podium(config),))

    return embedded if request.param == PLACES[0] else real


def config(file: Path, log: Path, **args: Any) -> dict[str, Any]:
    given = {"policy": str(file), "log": str(log), "deadline": "10s", **args}
    return {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}, {"name": "LearnedScore", "weight": 10}]}},
                "pluginConfig": [{"name": "LearnedScore", "args": given}],
            }
        ]
    }


def create_nodes(client: ApiClient) -> None:
    for number in range(4):
        node = make_node(f"gpu-{number}", cpu="32", labels={MODEL: ("T4", "G2")[number % 2]})
        for amounts in (node["status"]["allocatable"], node["status"]["capacity"]):
            amounts[COUNT] = "4"
        client.create(node)


def create_pods(client: ApiClient, prefix: str, count: int = 4) -> None:
    for number in range(count):
        pod = make_pod(f"{prefix}-{number}", cpu="1")
        pod["metadata"]["annotations"] = {MILLI: "250"}
        client.create(pod)


def until_placed(served: Served, prefix: str, count: int = 4) -> list[Object]:
    def placed() -> list[Object]:
        named = (pod for pod in served.client.list("Pod") if pod["metadata"]["name"].startswith(prefix))
        return [pod for pod in named if pod["spec"].get("nodeName")]

    until(lambda: len(placed()) == count, f"the pods {prefix} are bound", *served.components)
    return placed()


def sources(log: Path, prefix: str) -> list[str]:
    lines = (json.loads(line) for line in log.read_text().splitlines())
    return [line["source"] for line in lines if line["pod"].startswith(f"default/{prefix}") and "source" in line]


@pytest.mark.parametrize(("mode", "source"), [("active", "model"), ("shadow", "shadow")])
def test_a_policy_that_breaks_while_running_costs_no_pod_and_the_report_tells(
    serve: Serve, tmp_path: Path, mode: str, source: str
) -> None:
    file, log = written(tmp_path / "policy.json", GOOD), tmp_path / "decisions.jsonl"
    good = file.read_bytes()
    with serve(config(file, log, mode=mode)) as served:
        create_nodes(served.client)
        create_pods(served.client, "first")
        assert all(INDEX in pod["metadata"]["annotations"] for pod in until_placed(served, "first"))
        assert sources(log, "first") == [source] * 4
        for name, reason, text in (
            ("gone", "no_model", None),
            ("truncated", "schema", good[:100]),
            ("poisoned", "nan", good.replace(b"-0.3", b"NaN")),
        ):
            file.unlink() if text is None else file.write_bytes(text)
            create_pods(served.client, name)
            until_placed(served, name)
            assert sources(log, name) == [reason] * 4, "from the first decision on"
        file.write_bytes(good)
        create_pods(served.client, "last")
        until_placed(served, "last")
        assert sources(log, "last") == [source] * 4
        assert all(pod["spec"].get("nodeName") for pod in served.client.list("Pod")), "no pod is lost"
    report = podium_cli("policy", "report", str(log))
    assert report.code == 1
    for line in (f"decided by {source}: 8", "decided by no_model: 4", "decided by schema: 4", "decided by nan: 4"):
        assert line in report.out
    if mode == "shadow":
        assert "compared: 8, same best node" in report.out
        assert "the model took: median" in report.out
        assert "8 decisions are compared, 10,000 are wanted" in report.out
