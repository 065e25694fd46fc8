"""`podium extender` as a process beside the real components."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.testbed import Component, ControlPlane
from tools.testbed.podium import podium_environment
from tools.testbed.ports import LOOPBACK, free_port

ANSWERS = "podium extender answers"


def start_extender(
    plane: ControlPlane,
    agents: str,
    *flags: str | Path,
    watch: bool = True,
    ready: str = ANSWERS,
    port: int = 0,
    **more: str,
) -> Component:
    """An extender that is ready; its `url` is where it serves."""
    port = port or free_port()
    cluster: Sequence[str | Path] = ("--kubeconfig", plane.kubeconfig_path) if watch else ("--no-watch",)
    command = [sys.executable, "-m", "podium", "extender", "--agents", agents, "--port", str(port), *cluster, *flags]
    scheme = "https" if "--tls-cert-file" in flags else "http"
    environment = {**podium_environment(), **more}
    url = f"{scheme}://{LOOPBACK}:{port}"
    return plane.start_program("podium-extender", command, url=url, ready=ready, environment=environment)


def _request(extender: Component, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(extender.url.removeprefix("http://"), timeout=10)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def metrics_of(extender: Component) -> list[str]:
    return _request(extender, "GET", "/metrics")[1].decode().splitlines()


def status_of(extender: Component, method: str, path: str) -> int:
    return _request(extender, method, path)[0]


def asked(extender: Component, method: str, path: str, body: bytes) -> tuple[int, Any]:
    status, answer = _request(extender, method, path, body)
    return status, json.loads(answer)


def managed(name: str) -> str:
    """The resource by which a pod asks for an extender."""
    return f"example.com/{name}"


def entry(name: str, url: str, *verbs: str, **more: Any) -> dict[str, Any]:
    """An extender for the pods that ask for it."""
    resources = [{"name": managed(name), "ignoredByScheduler": True}]
    found: dict[str, Any] = {"urlPrefix": url, "managedResources": resources, "httpTimeout": "5s"}
    found |= {f"{verb}Verb": verb for verb in verbs}
    return found | ({"weight": 10} if "prioritize" in verbs else {}) | more
