"""Pods follow measured load: a real Prometheus, real node exporters and one the test controls feed `podium run`.

Node exporters `a` and `b` are known by the address they are scraped at, `c` by a label. What the controlled exporter
says decides; scores by load weigh so much that the other plugins only break ties, and fill the emptiest node where
nothing is known.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from tests.podium.cli.command import podium
from tests.podium.run.exposition import Family, families_of
from tools.testbed import Component, ControlPlane
from tools.testbed.connections import ConnectionPool
from tools.testbed.exporter import Exporter
from tools.testbed.monitoring import Job, NodeExporter, PrometheusServer, Target
from tools.testbed.objects import make_node, make_pod

ADDRESSES = {"a": "127.0.0.11", "b": "127.0.0.12", "c": "127.0.0.13"}
DEVICE = "given0"
RECEIVED, SENT = "node_network_receive_bytes_total", "node_network_transmit_bytes_total"
TRAFFIC = f'sum without (device) (rate({RECEIVED}{{device="{DEVICE}"}}[1m]) + rate({SENT}{{device="{DEVICE}"}}[1m]))'
WEAR = "disk_wear"
IDLE = 'avg without (cpu, mode) (rate(node_cpu_seconds_total{mode="idle"}[1m]))'
OF_CONTROLLED, OF_EXPORTERS = (TRAFFIC, WEAR), (IDLE,)


class Monitoring(NamedTuple):
    prometheus: PrometheusServer
    exporter: Exporter


@pytest.fixture(scope="module")
def monitoring(prometheus_programs: None) -> Iterator[Monitoring]:
    with ExitStack() as stack:
        exporter = stack.enter_context(Exporter())
        for node in ADDRESSES:
            exporter.grow(RECEIVED, 0.0, node=node, device=DEVICE)
            exporter.grow(SENT, 0.0, node=node, device=DEVICE)
            exporter.set(WEAR, 0.5, node=node)
        real = {node: stack.enter_context(NodeExporter(host)) for node, host in ADDRESSES.items()}
        jobs = [
            Job("given", [Target(exporter.address)], honor_labels=True),
            Job("addressed", [Target(real["a"].address), Target(real["b"].address)]),
            Job("labelled", [Target(real["c"].address, {"node": "c"})]),
        ]
        prometheus = stack.enter_context(PrometheusServer(jobs))
        for query in (*OF_CONTROLLED, *OF_EXPORTERS):
            prometheus.poll(query, lambda samples: len(samples) == len(ADDRESSES))
        yield Monitoring(prometheus, exporter)


class Site:
    """A cluster of three nodes, scheduled by Podium by what is measured."""

    def __init__(self, plane: ControlPlane, config: Mapping[str, Any]) -> None:
        self.plane = plane
        plane.client.create_all(_node(name, address) for name, address in ADDRESSES.items())
        self.podium: Component = plane.start_podium(config)
        self._numbers = count()

    def place(self, pods: int, scheduler: str = "default-scheduler") -> list[str]:
        """The nodes that new pods get."""
        names = {f"p{next(self._numbers)}" for _ in range(pods)}
        client = self.plane.client
        client.create_all(make_pod(name, cpu="100m", schedulerName=scheduler) for name in names)

        def mine(items: list[dict[str, Any]]) -> list[str]:
            return [each["spec"].get("nodeName", "") for each in items if each["metadata"]["name"] in names]

        return mine(client.poll("Pod", lambda items: all(mine(items)), "default", timeout=60.0))

    def wait(self, holds: Callable[[Mapping[str, Family]], bool], meanwhile: Callable[[], object]) -> None:
        """Until what Podium says of itself is so; `meanwhile` is done again and again."""
        headers = {"Authorization": f"Bearer {self.plane.token}"}
        pool = ConnectionPool(self.podium.url, ca_path=None, headers=headers, timeout=10.0)
        try:
            deadline = time.monotonic() + 60.0
            while time.monotonic() < deadline:
                if holds(families_of(pool.request("GET", "/metrics").body.decode())):
                    return
                meanwhile()
                time.sleep(0.2)
        finally:
            pool.close()
        raise AssertionError(self.podium.log_tail())

    def told(self, words: str) -> int:
        """In how many lines of the log these words are."""
        return sum(words in line for line in self.podium.log_text().splitlines())


def test_pods_avoid_the_busy_node_and_follow_any_expression(
    empty_control_plane: ControlPlane, monitoring: Monitoring
) -> None:
    prometheus, exporter = monitoring
    site = Site(empty_control_plane, _config(prometheus))

    exporter.grow(RECEIVED, 10e6, node="a", device=DEVICE)
    _wait_for_news(site, prometheus, f"{TRAFFIC} > 0", 1)
    assert set(site.place(8)) == {"b", "c"}

    exporter.grow(SENT, 1e9, node="b", device=DEVICE)
    _wait_for_news(site, prometheus, f"{TRAFFIC} > 1e7", 1)
    assert "b" not in site.place(8)

    for node, wear in {"a": 0.9, "b": 0.1, "c": 0.8}.items():
        exporter.set(WEAR, wear, node=node)
    _wait_for_news(site, prometheus, f"{WEAR} == 0.1", 1)
    assert set(site.place(4, "by-wear")) == {"b"}

    exporter.set(WEAR, 0.0, node="c")
    _wait_for_news(site, prometheus, f"{WEAR} == 0", 1)
    assert set(site.place(4, "by-wear")) == {"c"}


def test_what_node_exporters_say_arrives_and_finds_its_node(
    empty_control_plane: ControlPlane, monitoring: Monitoring, tmp_path: Any
) -> None:
    plane, config = empty_control_plane, tmp_path / "podium.yaml"
    plane.client.create_all(_node(name, address) for name, address in ADDRESSES.items())
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(yaml.safe_dump({**head, **_config(monitoring.prometheus)}))
    ran = podium(
        *("telemetry", "show", "--config", str(config), "--kubeconfig", str(plane.kubeconfig_path), "-o", "json")
    )
    assert ran.code == 0, ran.err
    shown = {each["query"]: each for each in msgspec.json.decode(ran.out)}
    assert set(shown) == {*OF_CONTROLLED, *OF_EXPORTERS}
    for each in shown.values():
        assert set(each["nodes"]) == set(ADDRESSES)
        assert each["samples"]["unmatched"] == 0
    shares = [each["value"] for each in shown[IDLE]["nodes"].values()]
    assert all(0 <= share <= 1.1 for share in shares), shares  # a machine may have no idle moment in a minute


def test_scheduling_goes_on_without_prometheus_and_follows_it_again_afterwards(
    empty_control_plane: ControlPlane, monitoring: Monitoring
) -> None:
    prometheus, exporter = monitoring
    for node in ADDRESSES:
        exporter.set(WEAR, 1.0 if node == "a" else 0.0, node=node)
    prometheus.poll(f"{WEAR} == 1", lambda samples: [labels["node"] for labels, _ in samples] == ["a"])
    site = Site(empty_control_plane, _config(prometheus))
    assert "a" not in site.place(6, "by-wear")

    prometheus.kill()
    site.wait(lambda said: _nodes_known(said) == 0, meanwhile=lambda: site.place(1, "by-wear"))
    # Nothing is known any more, so the emptiest node is the best.
    assert "a" in site.place(1, "by-wear")
    assert site.told("measured load: ") == site.told("values are kept until they are 3s old")

    prometheus.restart()
    known = len(ADDRESSES) * len((*OF_CONTROLLED, *OF_EXPORTERS))
    site.wait(lambda said: _nodes_known(said) == known, meanwhile=lambda: site.place(1, "by-wear"))
    assert "a" not in site.place(6, "by-wear")
    for query in (*OF_CONTROLLED, *OF_EXPORTERS):
        assert site.told(query[:79]) == 1
    site.wait(lambda said: said["podium_load_trouble"].value() == 0, meanwhile=lambda: site.place(1, "by-wear"))
    assert site.told("answers again") == 1


def _config(prometheus: PrometheusServer) -> dict[str, Any]:
    source = {"address": prometheus.url, "refreshInterval": "500ms", "maxAge": "3s", "timeout": "2s"}
    traffic = {"source": source, "networkInterface": DEVICE, "timeRangeInMinutes": 1}
    return {
        "profiles": [
            _profile("default-scheduler", "NetworkTraffic", traffic),
            _profile("by-wear", "PrometheusScore", {"source": source, "query": WEAR}),
            _profile("by-cpu", "PrometheusScore", {"source": source, "query": IDLE, "better": "higher"}),
        ]
    }


def _profile(scheduler: str, plugin: str, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "schedulerName": scheduler,
        "plugins": {"score": {"enabled": [{"name": plugin, "weight": 50}]}},
        "pluginConfig": [{"name": plugin, "args": args}],
    }


def _node(name: str, address: str) -> dict[str, Any]:
    node = make_node(name, cpu="32")
    node["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
    return node


def _wait_for_news(site: Site, prometheus: PrometheusServer, query: str, series: int) -> None:
    """Until Prometheus says so, and Podium has asked it since."""
    prometheus.poll(query, lambda samples: len(samples) == series)
    asked: list[float] = []

    def twice_more(said: Mapping[str, Family]) -> bool:
        asked.append(said["podium_load_refreshes_total"].value())
        return asked[-1] >= asked[0] + 2 * len((*OF_CONTROLLED, *OF_EXPORTERS))

    site.wait(twice_more, meanwhile=lambda: site.place(1))


def _nodes_known(said: Mapping[str, Family]) -> float:
    """Summed over everything that is followed."""
    return said["podium_load_nodes"].value()
