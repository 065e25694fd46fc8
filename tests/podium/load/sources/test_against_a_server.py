"""metrics-server through a real API server and the real client; node metrics are put there as custom resources."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

from podium.client import ApiError, Client, load_access
from podium.framework.clock import SystemClock
from podium.kube.meta import format_time
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources import Telemetry
from podium.load.sources.kubernetes import NODE_METRICS
from tests.podium.load.sources.stand_in import node
from tools.testbed import ControlPlane

NAME = "nodes.metrics.k8s.io"


def test_node_metrics_are_read_through_the_api_server(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {
            "group": "metrics.k8s.io",
            "names": {"plural": "nodes", "kind": "NodeMetrics"},
            "scope": "Cluster",
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": schema}],
        },
    }

    async def main() -> None:
        clock = SystemClock()
        async with Client(load_access(str(plane.kubeconfig_path))) as client:
            telemetry = Telemetry(clock=clock, rng=random.Random(1), nodes=lambda: [node("n1", cpu="4")], api=client)
            readings = telemetry.follow(Series(source=SourceSettings(kind="metrics-server"), query="CPU/Latest"))
            await telemetry.refresh()
            assert readings.problem is not None
            assert readings.problem.endswith("is it installed?")
            plane.client.create(definition)
            metrics = {
                "apiVersion": "metrics.k8s.io/v1beta1",
                "kind": "NodeMetrics",
                "metadata": {"name": "n1"},
                "timestamp": format_time(clock.now() - 20),
                "window": "15s",
                "usage": {"cpu": "1000500000n", "memory": "1Mi"},
            }
            async with asyncio.timeout(30):
                while not readings.values:
                    with suppress(ApiError):  # until the definition is served, and once it is there already
                        await client.post(NODE_METRICS, metrics)
                    await telemetry.refresh()
                    await asyncio.sleep(0.1)
            assert readings.values == {"n1": 25.0125}
            assert 19 <= clock.now() - readings.time_of("n1") < 60
            assert telemetry.problems == {}

    try:
        asyncio.run(main())
    finally:
        plane.client.delete("CustomResourceDefinition", NAME)
