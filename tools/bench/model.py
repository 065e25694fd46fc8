"""Measures what asking a model costs a decision beyond the server's own time.

A server in a process of its own speaks the Open Inference Protocol on loopback and does nothing: it reads a request,
and answers with scores that are made already. It takes its time from the last byte of the request to the last byte of
the answer; what is left of a decision is Podium's: features, writing and reading the request, the way over loopback,
checks, points. JSON, bytes and no question at all (`mode: off`) take turns, so that all are disturbed equally.
"""

from __future__ import annotations

import multiprocessing
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import numpy as np

from podium.cluster import Nodes
from podium.config import default_config
from podium.config.durations import SECOND, Duration
from podium.engine.explain import handle_for_trial
from podium.framework import Cycle
from podium.kube import Node, Pod
from podium.plugins import load_registry
from podium_lab.model_score import ModelScore
from podium_lab.model_score.args import ModelScoreArgs
from podium_lab.models.schema import SCHEMA_HASH, F, G, P
from tools.bench.templates import NODE, POD

WARM: Final = 10
_SHAPES: Final = {"nodes": [-1, -1, F], "pod": [-1, P], "global": [-1, G], "mask": [-1, -1]}
LONG: Final = Duration(60 * SECOND)
"""A deadline that doesn't pass here."""


class ModelFigures(msgspec.Struct, frozen=True):
    """Milliseconds of a decision without the server's own time."""

    nodes: int
    form: str
    """json, binary, or off: no question."""
    p50_ms: float
    p99_ms: float
    server_p50_ms: float
    """The server's own time."""
    decisions: int


class ModelBenchError(Exception):
    """What kept the measurement from its end."""


def measure_model(sizes: Sequence[int], decisions: int, on_decision: Callable[[str], None]) -> list[ModelFigures]:
    """The figures of each size of cluster and each form."""
    return [figures for size in sizes for figures in _measure(size, decisions, on_decision)]


def _measure(size: int, decisions: int, on_decision: Callable[[str], None]) -> Iterator[ModelFigures]:
    nodes = [msgspec.json.decode(NODE.text(i, size), type=Node) for i in range(size)]
    pod = msgspec.json.decode(POD.text(0, 1), type=Pod)
    handle = handle_for_trial(nodes, pod, default_config(load_registry()))
    with _server(size, False) as json_server, _server(size, True) as binary_server:
        asked = {"json": json_server, "binary": binary_server}
        plugins = {form: ModelScore(_args(url, mode="active"), handle) for form, (url, _times) in asked.items()} | {
            "off": ModelScore(_args(json_server[0], mode="off"), handle)
        }
        took: dict[str, list[float]] = {form: [] for form in plugins}
        for _ in range(decisions + WARM):
            for form, plugin in plugins.items():
                cycle = Cycle(pod, handle.cluster)
                began = time.perf_counter()
                plugin.score(cycle, Nodes(handle.cluster))
                took[form].append(time.perf_counter() - began)
            on_decision(f"{size} nodes")
        for form, plugin in plugins.items():
            wrong = {why: n for why, n in plugin.decisions.guard.fallbacks.items() if why not in ("", "off") and n}
            if wrong:
                raise ModelBenchError(f"{form}: the model did not decide: {wrong}")
        server = {form: times() for form, (_url, times) in asked.items()} | {"off": [0.0] * (decisions + WARM)}
    for form, seconds in took.items():
        own = np.array(server[form][-decisions:])
        beyond = 1000 * (np.array(seconds[WARM:]) - own)
        p50, p99 = np.quantile(beyond, [0.5, 0.99]).tolist()
        yield ModelFigures(size, form, round(p50, 3), round(p99, 3), round(1000 * float(np.median(own)), 3), decisions)


def _args(url: str, mode: str) -> ModelScoreArgs:
    return ModelScoreArgs(url=url, model="nothing", deadline=LONG, mode=mode)


@contextmanager
def _server(nodes: int, binary: bool) -> Iterator[tuple[str, Callable[[], list[float]]]]:
    """A server's URL, and what gives its own time for each question, once there are no more."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, nodes, binary), daemon=True)
    process.start()
    try:
        if not ours.poll(60):
            raise ModelBenchError("the server did not start")

        def times() -> list[float]:
            ours.send(None)
            found: list[float] = ours.recv()
            return found

        yield f"http://127.0.0.1:{ours.recv()}", times
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Any, nodes: int, binary: bool) -> None:
    """Answer questions one after the other until the other side wants to know how long that took."""
    about = {
        "/v2": {"name": "nothing", "extensions": ["binary_tensor_data"] if binary else []},
        "/v2/health/ready": {},
        "/v2/models/nothing": {
            "name": "nothing",
            "inputs": [
                {"name": name, "datatype": "BOOL" if name == "mask" else "FP32", "shape": shape}
                for name, shape in _SHAPES.items()
            ],
            "outputs": [{"name": "scores", "datatype": "FP32", "shape": [-1, -1]}],
            "parameters": {"schema": SCHEMA_HASH},
        },
    }
    answer = _answer(nodes, binary)
    took: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        pipe.send(listening.getsockname()[1])
        connection, _ = listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = connection.makefile("rb")
        while not pipe.poll():
            if not select.select([connection, pipe], [], [])[0].count(connection):
                break
            line = stream.readline()
            if not line:
                break
            method, path, _version = line.decode().split()
            length = 0
            while header := stream.readline().strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            stream.read(length)
            began = time.perf_counter()
            body = msgspec.json.encode(about[path]) if method == "GET" else b""
            connection.sendall(answer if method == "POST" else _http(body, b""))
            if method == "POST":
                took.append(time.perf_counter() - began)
        pipe.recv()
        pipe.send(took)


def _answer(nodes: int, binary: bool) -> bytes:
    scores = np.linspace(0.0, 1.0, nodes, dtype=np.float32)
    output: dict[str, Any] = {"name": "scores", "datatype": "FP32", "shape": [1, nodes]}
    if not binary:
        return _http(msgspec.json.encode({"outputs": [{**output, "data": scores.tolist()}]}), b"")
    head = msgspec.json.encode({"outputs": [{**output, "parameters": {"binary_data_size": scores.nbytes}}]})
    return _http(head + scores.tobytes(), b"Inference-Header-Content-Length: %d\r\n" % len(head))


def _http(body: bytes, headers: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (headers, len(body), body)
