"""What nodes and pods use, as it is drawn, served and read."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubecel.quantity import parse
from podium.client import Client, load_access
from podium.framework.clock import SystemClock
from podium.kube.decode import decode_json
from podium.kube.node import Node
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources import Telemetry
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.http.server import ApiServer
from podium_cluster.apiserver.kinds import NODE, POD
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from podium_cluster.kubelets import Kubelets, NodeShape
from podium_plugins.target_load_packing import TargetLoadPacking
from tests.podium.plugins.ask import raw_scores
from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster, template
from tools.kit.builders import make_cluster, make_handle, make_pod
from tools.testbed.build import CONTROL_PLANE, programs

Object = dict[str, Any]
GROUP = "/apis/metrics.k8s.io/v1beta1"


def pod(name: str, node: str, cpu: str, memory: str, containers: int = 1) -> Object:
    wishes = {"podium.dev/startup": "0", "podium.dev/usage-cpu": cpu, "podium.dev/usage-memory": memory}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec = [{"name": f"c{i}", "image": "app:1", "resources": resources} for i in range(containers)]
    found = template({"app": name}, wishes, nodeName=node, containers=spec)
    found["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **found}


def ask(cluster: Embedded, path: str) -> Object:
    answer = RequestHandler(cluster.api).handle(ApiRequest("GET", path))
    assert isinstance(answer, ApiResponse)
    assert answer.status == 200, answer.body
    found: Object = json.loads(answer.body)
    return found


def cores(usage: dict[str, str]) -> float:
    return parse(usage["cpu"]) / 10**9


def mebibytes(usage: dict[str, str]) -> float:
    return parse(usage["memory"]) / 10**9 / 2**20


def test_use_swings_around_what_was_declared() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod("share", "node-0", "60%", "50%", containers=2))
        cluster.create(pod("fixed", "node-1", "250m", "100Mi"))
        await cluster.until(lambda: len(list(cluster.running())) == 2)
        shares, fixed = [], []
        for _ in range(100):
            found = {item["metadata"]["name"]: item for item in ask(cluster, f"{GROUP}/pods")["items"]}
            containers = found["share"]["containers"]
            assert [each["name"] for each in containers] == ["c0", "c1"]
            shares.append(sum(cores(each["usage"]) for each in containers))
            fixed.append(mebibytes(found["fixed"]["containers"][0]["usage"]))
            await asyncio.sleep(20)
        assert all(1.2 * 0.7 <= each <= 1.2 * 1.3 for each in shares)
        assert max(shares) - min(shares) > 0.01
        assert all(95 <= each <= 105 for each in fixed)

    in_embedded_cluster(story)


def test_a_node_uses_what_its_pods_use_and_a_little_more() -> None:
    async def story(cluster: Embedded) -> None:
        for number in range(3):
            cluster.create(pod(f"p{number}", "node-0", "1", "1Gi"))
        await cluster.until(lambda: len(list(cluster.running())) == 3)
        busy, idle = (ask(cluster, f"{GROUP}/nodes/node-{i}")["usage"] for i in (0, 1))
        of_pods = ask(cluster, f"{GROUP}/namespaces/default/pods")["items"]
        assert cores(busy) == pytest.approx(0.05 + sum(cores(p["containers"][0]["usage"]) for p in of_pods))
        assert cores(idle) == 0.05
        assert mebibytes(idle) == 300
        assert ask(cluster, f"{GROUP}/namespaces/kube-system/pods")["items"] == []
        chosen = ask(cluster, f"{GROUP}/nodes?labelSelector=kubernetes.io/hostname%3Dnode-1")["items"]
        assert [item["metadata"]["name"] for item in chosen] == ["node-1"]

    in_embedded_cluster(story)


def test_what_is_not_running_or_not_heard_of_is_not_measured() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod("p", "node-0", "1", "1Gi"))
        await cluster.until(lambda: list(cluster.running()))
        cluster.kubelets.stop_node("node-0")
        answers = [
            RequestHandler(cluster.api).handle(ApiRequest("GET", f"{GROUP}/{what}"))
            for what in ("nodes/node-0", "nodes/no-such")
        ]
        assert [answer.status for answer in answers if isinstance(answer, ApiResponse)] == [404, 404]
        assert ask(cluster, f"{GROUP}/pods")["items"] == []
        assert [item["metadata"]["name"] for item in ask(cluster, f"{GROUP}/nodes")["items"]] == ["node-1", "node-2"]

    in_embedded_cluster(story)


def test_numbers_hold_for_fifteen_seconds() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod("p", "node-0", "1", "1Gi"))
        await cluster.until(lambda: list(cluster.running()))
        await asyncio.sleep(15 - cluster.clock.now() % 15)
        first = ask(cluster, f"{GROUP}/nodes/node-0")
        await asyncio.sleep(14)
        assert ask(cluster, f"{GROUP}/nodes/node-0") == first
        await asyncio.sleep(1)
        later = ask(cluster, f"{GROUP}/nodes/node-0")
        assert later["usage"] != first["usage"]
        assert later["timestamp"] > first["timestamp"]

    in_embedded_cluster(story)


def test_a_plugin_scores_nodes_by_the_use_that_the_embedded_cluster_serves(tmp_path: Path) -> None:
    """Over HTTP, through the client and the telemetry of a live scheduler."""

    async def main() -> None:
        clock, rng = SystemClock(), random.Random(4)
        api = EmbeddedApi(clock=clock, rng=rng)
        server = ApiServer(api, rng=rng)
        await server.start()
        async with Kubelets(api, clock, rng) as kubelets:
            kubelets.add_nodes([NodeShape(count=3, cpu="4")])
            for name, cpu in (("a", "3"), ("b", "500m")):
                api.create(POD, pod(name, "node-0" if name == "a" else "node-1", cpu, "1Gi"))
            while not all(stored.fields[5] == "Running" for stored in api.store.items(POD)):
                await asyncio.sleep(0.01)
            nodes = [decode_json(Node, stored.raw) for stored in api.store.items(NODE)]
            config = tmp_path / "kubeconfig"
            config.write_text(_kubeconfig(server.url))
            async with Client(load_access(str(config))) as client:
                telemetry = Telemetry(clock=clock, rng=rng, nodes=lambda: nodes, api=client)
                readings = telemetry.follow(Series(source=SourceSettings(kind="metrics-server"), query="CPU/Latest"))
                cluster = make_cluster(nodes)
                handle = make_handle(cluster)
                handle.load = telemetry
                assert TargetLoadPacking.Args is not None
                plugin = TargetLoadPacking(msgspec.convert({}, TargetLoadPacking.Args), handle)
                await telemetry.refresh()
                assert readings.problem is None
                used = readings.values
                assert used["node-0"] > 50 > used["node-1"] > used["node-2"]
                scores = raw_scores(plugin, make_pod(requests={"cpu": "400m"}), cluster)
                assert scores["node-1"] > scores["node-2"] > scores["node-0"]
        await server.stop()

    asyncio.run(main())


@pytest.mark.usefixtures("testbed_programs")
def test_kubectl_top_shows_it(tmp_path: Path) -> None:
    async def main() -> None:
        clock, rng = SystemClock(), random.Random(4)
        api = EmbeddedApi(clock=clock, rng=rng)
        server = ApiServer(api, rng=rng)
        await server.start()
        config = tmp_path / "kubeconfig"
        config.write_text(_kubeconfig(server.url))
        async with Kubelets(api, clock, rng) as kubelets:
            kubelets.add_nodes([NodeShape(count=2, cpu="4")])
            api.create(POD, pod("busy", "node-0", "2", "1Gi"))
            while not all(stored.fields[5] == "Running" for stored in api.store.items(POD)):
                await asyncio.sleep(0.01)
            nodes = (await _kubectl(config, "top", "nodes")).splitlines()
            assert nodes[0].split() == ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]
            assert [line.split()[0] for line in nodes[1:]] == ["node-0", "node-1"]
            assert nodes[2].split()[1:] == ["50m", "1%", "300Mi", "0%"]
            pods = (await _kubectl(config, "top", "pods", "--containers")).splitlines()
            assert pods[1].split()[:2] == ["busy", "c0"]
            assert 1400 <= int(pods[1].split()[2].removesuffix("m")) <= 2600
        await server.stop()

    asyncio.run(main())


async def _kubectl(config: Path, *arguments: str) -> str:
    program = str(programs(*CONTROL_PLANE)["kubectl"])
    environment = {"KUBECONFIG": str(config), "HOME": str(config.parent)}
    process = await asyncio.create_subprocess_exec(
        program, *arguments, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


def _kubeconfig(url: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": {"server": url}}],
            "users": [{"name": "anybody", "user": {}}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "anybody"}}],
            "current-context": "embedded",
        }
    )
