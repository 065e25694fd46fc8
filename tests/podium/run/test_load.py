"""Measured load in `podium run`: pods go where little is measured, and go on being placed when measuring fails."""

from __future__ import annotations

import shutil
from typing import Any

from tests.podium.load.sources import quiet
from tests.podium.load.sources.stand_in import stand_in_beside, vector
from tools.testbed import ControlPlane
from tools.testbed.connections import ConnectionPool
from tools.testbed.objects import make_node, make_pod

PLUGIN = ("--plugin", "quiet:Quiet")


def by_load(address: str) -> dict[str, Any]:
    source = {"address": address, "refreshInterval": "200ms", "timeout": "5s", "maxAge": "6s"}
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"score": {"enabled": [{"name": "Quiet", "weight": 100}]}},
        "pluginConfig": [{"name": "Quiet", "args": {"source": source, "query": "load"}}],
    }
    return {"profiles": [profile]}


def test_pods_go_where_little_is_measured_and_are_placed_without_measurements_too(
    empty_control_plane: ControlPlane,
) -> None:
    plane = empty_control_plane
    shutil.copy(quiet.__file__, plane.folder)
    plane.client.create_all([make_node("n1"), make_node("n2")])

    def placed(name: str) -> str:
        plane.client.create_all([make_pod(name)])
        pods = plane.client.poll("Pod", lambda items: all("nodeName" in each["spec"] for each in items))
        return next(str(each["spec"]["nodeName"]) for each in pods if each["metadata"]["name"] == name)

    with stand_in_beside() as server:
        server.says(vector(({"node": "n1"}, "90"), ({"node": "n2"}, "10")))
        scheduler = plane.start_podium(by_load(server.url), flags=PLUGIN)
        admin = ConnectionPool(
            scheduler.url, ca_path=None, headers={"Authorization": f"Bearer {plane.token}"}, timeout=5.0
        )
        try:
            series = f'{{query="load",source="prometheus {server.url}"}}'
            scheduler.wait_until_ready(
                lambda: f"podium_load_nodes{series} 2.0" in admin.request("GET", "/metrics").body.decode(), 20
            )
            assert [placed(f"first-{i}") for i in range(3)] == ["n2"] * 3
            assert f"podium_load_trouble{series} 0.0" in admin.request("GET", "/metrics").body.decode()
            server.says("", status=503)
            assert placed("second") in ("n1", "n2")
            scheduler.wait_until_ready(
                lambda: f"podium_load_nodes{series} 0.0" in admin.request("GET", "/metrics").body.decode(), 20
            )
            assert f"podium_load_trouble{series} 1.0" in admin.request("GET", "/metrics").body.decode()
            assert placed("third") in ("n1", "n2")
        finally:
            admin.close()
        scheduler.stop(grace=20.0)
        assert scheduler.log_text().count("answered HTTP 503; values are kept until they are 6s old") == 1
