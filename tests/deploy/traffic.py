"""Every process of Podium beside a real API server, and traffic that makes each of their metrics say something."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from podium.controllers.catalog import definitions
from podium_plugins.gpu.request import COUNT, MILLI, MODEL
from tests.podium.extender.beside_scheduler import asked, start_extender
from tests.podium.run.crowd import until
from tools.testbed import Component, ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.exporter import Exporter
from tools.testbed.monitoring import Job, PrometheusServer, Target
from tools.testbed.objects import make_node, make_pod
from tools.testbed.podium import podium_environment
from tools.testbed.ports import LOOPBACK, free_port

ALERTS: Final = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yaml"
NODES: Final = ("one", "two", "three")
POD_GROUP: Final = "scheduling.x-k8s.io/v1alpha1"
QUESTION: Final = json.dumps({"Pod": make_pod("q"), "NodeNames": NODES}).encode()
TROUBLE: Final = '''
import time
from podium import Plugin, Wait

class Trouble(Plugin):
    """Raises, blocks or holds a pod, as its label says."""

    def score_node(self, cycle, node):
        trouble = cycle.pod.metadata.labels.get("trouble")
        if trouble == "raise":
            raise ValueError("as its label says")
        if trouble == "block":
            time.sleep(0.15)
        return 0

    def permit(self, cycle, node):
        return Wait(0.5) if cycle.pod.metadata.labels.get("trouble") == "hold" else None
'''


class Monitored(NamedTuple):
    """A Prometheus that scrapes everything, and what makes work for it."""

    plane: ControlPlane
    prometheus: PrometheusServer
    extender: Component
    rounds: Iterator[int]

    def make_traffic(self) -> None:
        """One pod of each sort, a binding past the scheduler, a request to the extender, a custom resource."""
        number, client = next(self.rounds), self.plane.client
        for sort in ("plain", "raise", "block", "hold"):
            client.create(_pod(f"{sort}-{number}", labels={"trouble": sort}))
        client.create(_pod(f"huge-{number}", cpu="1000"))
        client.create(_pod(f"gpu-{number}", schedulerName="learned", annotations={MILLI: "10"}))
        client.create(_pod(f"online-{number}", schedulerName="online"))
        client.create(_pod(f"by-hand-{number}", schedulerName="by-hand"))
        client.bind(f"by-hand-{number}", "cordoned")  # as a scheduler would that does not heed cordons
        asked(self.extender, "POST", "/safe/filter", QUESTION)
        group = {"metadata": {"name": f"group-{number}", "namespace": "default"}, "spec": {"minMember": 1}}
        client.create({"apiVersion": POD_GROUP, "kind": "PodGroup", **group})


def _pod(name: str, cpu: str = "1m", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    made = make_pod(name, cpu=cpu, **spec)
    made["metadata"]["annotations"] = {"slo": "0.9", "controller": "shop", **(annotations or {})}
    return made


@contextmanager
def monitored(plane: ControlPlane) -> Iterator[Monitored]:
    """Scheduler, shadow, controller and extender, scraped every second, with the alerts loaded."""
    _create_nodes(plane)
    (plane.folder / "trouble.py").write_text(TROUBLE)
    ports = {name: free_port() for name in ("podium", "shadow", "controller")}
    with Exporter() as exporter:
        for node in NODES:
            exporter.set("disk_wear", 0.5, node=node)
        extender = start_extender(plane, "safe")
        jobs = [Job(name, [Target(f"{LOOPBACK}:{port}")], token=plane.token) for name, port in ports.items()]
        jobs += [Job("extender", [Target(extender.url.removeprefix("http://"))])]
        jobs += [Job("given", [Target(exporter.address)], honor_labels=True)]
        with PrometheusServer(jobs, rules=[ALERTS]) as prometheus:
            own = ["--plugin", "trouble:Trouble", "--qos-port=0"]
            plane.start_podium(_config(prometheus.url), flags=[f"--secure-port={ports['podium']}", *own])
            shadow = {"profiles": [{"schedulerName": "by-hand"}]}
            plane.start_podium(shadow, flags=[f"--secure-port={ports['shadow']}", "--shadow"])
            _start_controller(plane, ports["controller"])
            yield Monitored(plane, prometheus, extender, count())


def _create_nodes(plane: ControlPlane) -> None:
    for definition in definitions().values():
        plane.client.create(definition)
    until(lambda: _serves_groups(plane), "PodGroups are served")
    for name in NODES:
        node = make_node(name, cpu="64", labels={MODEL: "T4"})
        for amounts in (node["status"]["allocatable"], node["status"]["capacity"]):
            amounts[COUNT] = "8"
        plane.client.create(node)
    cordoned = make_node("cordoned", cpu="64")
    cordoned.setdefault("spec", {})["unschedulable"] = True
    plane.client.create(cordoned)


def _serves_groups(plane: ControlPlane) -> bool:
    try:
        return plane.client.list(f"{POD_GROUP}/PodGroup") == []
    except Exception:
        return False


def _config(prometheus: str) -> dict[str, Any]:
    only = {"enabled": [{"name": "QosAware"}], "disabled": [{"name": "*"}]}
    more = {"enabled": [{"name": "QosAware"}]}
    promises = {"queueSort": only, "reserve": more, "preBind": more, "postBind": more}
    load = {"source": {"address": prometheus, "refreshInterval": "1s"}, "query": "disk_wear"}
    here = [{"name": "Trouble"}, {"name": "PrometheusScore"}]
    trained = [{"name": "GpuShare"}, {"name": "LearnedScore"}]
    return {
        "leaderElection": {"leaderElect": True},
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {**promises, "multiPoint": {"enabled": here}},
                "pluginConfig": [{"name": "PrometheusScore", "args": load}],
            },
            {"schedulerName": "learned", "plugins": {**promises, "multiPoint": {"enabled": trained}}},
            {
                "schedulerName": "online",
                "plugins": {**promises, "multiPoint": {"enabled": [{"name": "OnlineScore"}]}},
                "pluginConfig": [{"name": "OnlineScore", "args": {"prometheusAddress": prometheus}}],
            },
        ],
    }


def _start_controller(plane: ControlPlane, port: int) -> None:
    command: list[str | Path] = [sys.executable, "-m", "podium", "controller", "--kubeconfig", plane.kubeconfig_path]
    flags = ["--controllers=podgroup", "--bind-address", LOOPBACK, f"--secure-port={port}"]
    plane.start_program(
        "podium-controller", [*command, *flags], ready="controller podgroup runs", environment=podium_environment()
    )


def alert_rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules
