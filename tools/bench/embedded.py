"""Measures the embedded API over HTTP from another process: writes, a whole list, watches, and memory.

The server runs alone, without nodes that run pods, controllers or a scheduler. CPU time is the server's own, which a
busy machine changes less than it changes the rates.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from tools.bench.requests import request, send_all
from tools.bench.usage import cpu_seconds, resident_bytes

HOST: Final = "127.0.0.1"
WATCHERS: Final = 10
CHANGES: Final = 5000
"""How many changes the watchers receive."""
_PODS: Final = "/api/v1/namespaces/default/pods"
_READY: Final = "serving on "

Tell = Callable[[str, bool], None]


class EmbeddedFigures(msgspec.Struct, frozen=True):
    nodes: int
    pods: int
    creates_per_second: float
    create_cpu_us: float
    """CPU microseconds of the server for each pod created."""
    binds_per_second: float
    bind_cpu_us: float
    resident_bytes: int
    """What the server holds with all nodes and pods."""
    list_seconds: float
    list_bytes: int
    watchers: int
    watch_events_per_second: float
    """Events delivered, counted over all watchers."""
    watch_cpu_us: float
    """CPU microseconds of the server for each event delivered, the write that caused it included in the sum."""


class ServerFailedError(Exception):
    """The server to be measured did not start; the text says why."""


def run_embedded(nodes: int, pods: int, tell: Tell) -> EmbeddedFigures:
    """Measure; `tell(text, done)` hears of each phase."""
    with _server() as (port, pid):
        return asyncio.run(_measure(port, pid, nodes, pods, tell))


async def _measure(port: int, pid: int, nodes: int, pods: int, tell: Tell) -> EmbeddedFigures:
    tell(f"creating {nodes:,} nodes", False)
    await send_all(HOST, port, [request("POST", "/api/v1/nodes", _node(number)) for number in range(nodes)])
    tell(f"creating {pods:,} pods", True)
    creates, create_cpu = await _timed(port, pid, [request("POST", _PODS, _pod(number)) for number in range(pods)])
    tell(f"binding {pods:,} pods", True)
    binds, bind_cpu = await _timed(port, pid, [_bind(number, nodes) for number in range(pods)])
    resident = resident_bytes(pid)
    tell("listing all pods", True)
    began = time.perf_counter()
    body = await _get(port, "/api/v1/pods")
    list_seconds = time.perf_counter() - began
    tell(f"watching with {WATCHERS} watchers", True)
    fan_out, fan_out_cpu = await _fan_out(port, pid, min(pods, CHANGES))
    tell("done", True)
    return EmbeddedFigures(
        nodes,
        pods,
        round(pods / creates, 1),
        round(create_cpu / pods * 1e6, 1),
        round(pods / binds, 1),
        round(bind_cpu / pods * 1e6, 1),
        resident,
        round(list_seconds, 3),
        len(body),
        WATCHERS,
        round(min(pods, CHANGES) * WATCHERS / fan_out, 1),
        round(fan_out_cpu / (min(pods, CHANGES) * WATCHERS) * 1e6, 1),
    )


async def _timed(port: int, pid: int, requests: list[bytes]) -> tuple[float, float]:
    """Seconds and the server's CPU seconds."""
    cpu = cpu_seconds(pid)
    seconds = await send_all(HOST, port, requests)
    return seconds, cpu_seconds(pid) - cpu


async def _fan_out(port: int, pid: int, changes: int) -> tuple[float, float]:
    """Seconds and CPU seconds from the first change until every watcher has heard of the last."""
    listed = msgspec.json.decode(await _get(port, "/api/v1/pods?limit=1"), type=_Listed)
    since = listed.metadata["resourceVersion"]
    started = asyncio.Event()
    watchers = [asyncio.create_task(_watch(port, since, changes, started)) for _ in range(WATCHERS)]
    await asyncio.sleep(0.2)  # The watches are open before the first change.
    cpu = cpu_seconds(pid)
    began = time.perf_counter()
    merge = "application/merge-patch+json"
    patches = [
        request("PATCH", f"{_PODS}/{_name(number)}", {"metadata": {"labels": {"turn": "1"}}}, merge)
        for number in range(changes)
    ]
    await asyncio.gather(send_all(HOST, port, patches), *watchers)
    return time.perf_counter() - began, cpu_seconds(pid) - cpu


async def _watch(port: int, since: str, changes: int, started: asyncio.Event) -> None:
    reader, writer = await asyncio.open_connection(HOST, port, limit=1 << 24)
    writer.write(request("GET", f"/api/v1/pods?watch=true&resourceVersion={since}"))
    seen = 0
    while seen < changes:
        data = await reader.read(1 << 20)
        if not data:
            raise ServerFailedError("a watch was closed while it was measured")
        seen += data.count(b'{"type":"MODIFIED"')
    writer.close()


async def _get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port, limit=1 << 24)
    writer.write(request("GET", path))
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
    body = await reader.readexactly(length)
    writer.close()
    return body


class _Listed(msgspec.Struct):
    metadata: dict[str, Any]


def _name(number: int) -> str:
    return f"pod-{number:06d}"


def _node(number: int) -> dict[str, Any]:
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"node-{number:05d}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05d}", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions},
    }


def _pod(number: int) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _name(number), "namespace": "default", "labels": {"app": f"app-{number % 100}"}},
        "spec": {"containers": [container]},
    }


def _bind(number: int, nodes: int) -> bytes:
    target = {"kind": "Node", "name": f"node-{number % max(nodes, 1):05d}"}
    metadata = {"name": _name(number), "namespace": "default"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    return request("POST", f"{_PODS}/{_name(number)}/binding", body)


@contextlib.contextmanager
def _server() -> Iterator[tuple[int, int]]:
    """Port and process id of a server of its own."""
    command = [sys.executable, "-m", "podium_cluster.apiserver", "--port=0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        if not line.startswith(_READY):
            raise ServerFailedError(f"the embedded API did not start: {process.stderr.read().strip()}")
        yield int(line.rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
        process.stderr.close()
