"""Tokens are planted wherever `podium run` is given or shown any; then everything that comes out of it is searched."""

from __future__ import annotations

import json
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.podium.cli.command import podium
from tests.podium.load.sources import quiet
from tests.podium.serving.hostile_requests import PLANTED, send_hostile_requests
from tools.testbed import ControlPlane
from tools.testbed.connections import ConnectionPool
from tools.testbed.objects import make_node, make_pod


def config(plugin_address: str) -> dict[str, Any]:
    """Secrets of plugins, of an extender and of a source that cannot be reached, so that each has something to log."""
    source = {"address": plugin_address, "refreshInterval": "200ms", "timeout": "1s"}
    sources = [
        {**source, "basicAuth": {"username": "u", "password": f"{PLANTED}-password"}},
        {**source, "token": f"{PLANTED}-token"},
        {**source, "headers": [{"name": "X-Scope-OrgID", "value": f"{PLANTED}-header"}]},
    ]
    profiles = [
        {
            "schedulerName": f"by-load-{number}",
            "plugins": {"score": {"enabled": [{"name": "Quiet"}]}},
            "pluginConfig": [{"name": "Quiet", "args": {"source": each, "query": "load"}}],
        }
        for number, each in enumerate(sources)
    ]
    extender = {
        "urlPrefix": plugin_address.replace("://", f"://user:{PLANTED}-extender@"),
        "filterVerb": "filter",
    }
    return {"profiles": profiles, "extenders": [extender]}


def nobody_listens() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_that_is_secret_comes_out_of_a_scheduler(empty_control_plane: ControlPlane, form: str) -> None:
    plane = empty_control_plane
    shutil.copy(quiet.__file__, plane.folder)
    plane.client.create_all([make_node("n1"), make_pod("waits", schedulerName="by-load-1")])
    flags = ("--plugin", "quiet:Quiet", "--log-format", form, "--log-level", "debug")
    scheduler = plane.start_podium(config(nobody_listens()), flags=flags)
    found: dict[str, str] = {}
    admin = ConnectionPool(scheduler.url, ca_path=None, headers={"Authorization": f"Bearer {plane.token}"}, timeout=5.0)
    try:
        send_hostile_requests(scheduler.url)
        scheduler.wait_until_ready(lambda: "refuses connections" in scheduler.log_text(), 20)
        plane.client.poll("events.k8s.io/v1/Event", lambda items: "/filter" in str(items), "default")
        for path in ("/configz", "/metrics", "/healthz?verbose"):
            found[path] = admin.request("GET", path).body.decode()
    finally:
        admin.close()
    shown = json.loads(found["/configz"])["componentconfig"]
    assert shown["profiles"][0]["pluginConfig"], "the configuration is shown"
    assert shown["extenders"][0]["urlPrefix"].startswith("http://user:***@")
    found["events"] = str(plane.client.list("events.k8s.io/v1/Event", "default"))
    found["pods"] = str(plane.client.list("Pod"))
    scheduler.stop(grace=20.0)
    found["log"] = scheduler.log_text()
    assert "user:***@" in found["events"], "the extender's failure is an event"
    assert "malformed request" in found["log"], "the attack got as far as the log"
    for where, text in found.items():
        assert PLANTED not in text, f"{where}: …{text[max(0, text.index(PLANTED) - 200) :][:400]}…"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", found["log"])


@pytest.mark.parametrize(
    ("user", "code"),
    [
        ({"token": f"{PLANTED}-token"}, 2),
        ({"token": f"{PLANTED}\n-token"}, 2),
        ({"username": "u", "password": f"{PLANTED}-password"}, 2),
        ({"client-certificate-data": f"{PLANTED}!", "client-key-data": f"{PLANTED}!"}, 2),
        ({"token": {PLANTED: PLANTED}}, 2),
    ],
)
def test_a_kubeconfig_that_does_not_let_in_is_not_quoted(
    empty_control_plane: ControlPlane, tmp_path: Path, user: dict[str, Any], code: int
) -> None:
    kubeconfig = tmp_path / "config"
    content = yaml.safe_load(empty_control_plane.write_kubeconfig(tmp_path / "good").read_text())
    content["users"] = [{"name": content["users"][0]["name"], "user": user}]
    kubeconfig.write_text(json.dumps(content))
    ran = podium("explain", "a-pod", "--kubeconfig", str(kubeconfig))
    assert ran.code == code, ran.err
    assert PLANTED not in ran.out + ran.err
    assert "Traceback" not in ran.err
