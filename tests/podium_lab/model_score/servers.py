"""A model server for tests: answers well, or misbehaves in any of the ways that real ones do."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from podium_lab.models.schema import SCHEMA_HASH, F, G, P

Score = Callable[[dict[str, np.ndarray]], Any]


def by_free_cpu(tensors: dict[str, np.ndarray]) -> list[float]:
    """Prefers the last node."""
    return np.arange(tensors["mask"].shape[1], dtype=float).tolist()


class ModelServer:
    """Speaks the Open Inference Protocol and Podium's own on a port of its own."""

    def __init__(self, *, binary: bool = False, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.score: Score = by_free_cpu
        self.delay = 0.0
        self.raw: bytes | None = None
        """What is sent instead of an answer, head and all."""
        self.answer: Callable[[dict[str, Any]], Any] | None = None
        """Makes the answer of /v1/score."""
        self.endless = False
        self.schema: str | None = SCHEMA_HASH
        self.width = F
        self.binary = binary
        self.requests: list[tuple[str, str]] = []
        self.questions: list[dict[str, Any]] = []
        self.outcomes: list[dict[str, Any]] = []
        self.refuse_outcomes = 0
        self.headers: list[dict[str, str]] = []
        self._sockets: list[socket.socket] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                outer._sockets.append(self.connection)

            def log_message(self, *_args: Any) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                outer.requests.append(("GET", self.path))
                self._reply(outer.about(self.path))

            def do_POST(self) -> None:
                outer.requests.append(("POST", self.path))
                outer.headers.append(dict(self.headers))
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(outer.delay)
                if outer.raw is not None:
                    self.wfile.write(outer.raw)
                    self.close_connection = True
                    return
                if outer.endless:
                    self._flood()
                    return
                if self.path == "/v1/outcome":
                    if outer.refuse_outcomes:
                        outer.refuse_outcomes -= 1
                        self.send_error(500)
                        return
                    outer.outcomes.append(json.loads(body))
                    self._reply({})
                    return
                if self.path == "/v1/score":
                    question = json.loads(body)
                    outer.questions.append(question)
                    assert outer.answer is not None
                    self._reply(outer.answer(question))
                    return
                self._infer(body)

            def _infer(self, body: bytes) -> None:
                length = self.headers.get("Inference-Header-Content-Length")
                head, rest = (body, b"") if length is None else (body[: int(length)], body[int(length) :])
                question = json.loads(head)
                outer.questions.append(question)
                tensors, at = {}, 0
                for each in question["inputs"]:
                    kind = np.bool_ if each["datatype"] == "BOOL" else np.float32
                    flat: Any
                    if length is None:
                        flat = np.array(each["data"], dtype=kind)
                    else:
                        size = each["parameters"]["binary_data_size"]
                        flat, at = np.frombuffer(rest[at : at + size], dtype=kind), at + size
                    tensors[each["name"]] = flat.reshape(each["shape"])
                scores = outer.score(tensors)
                output: dict[str, Any] = {"name": "scores", "datatype": "FP32", "shape": [1, len(scores)]}
                answer = {"model_name": "m", "id": question["id"], "outputs": [output]}
                if length is None:
                    output["data"] = scores
                    self._reply(answer)
                    return
                content = np.array(scores, dtype="<f4").tobytes()
                output["parameters"] = {"binary_data_size": len(content)}
                told = json.dumps(answer).encode()
                self._send(told + content, {"Inference-Header-Content-Length": str(len(told))})

            def _flood(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(100_000_000))
                self.end_headers()
                try:
                    for _ in range(100):
                        self.wfile.write(b" " * 1_000_000)
                except OSError:
                    pass
                self.close_connection = True

            def _reply(self, data: Any) -> None:
                if data is None:
                    self.send_error(404)
                else:
                    self._send(json.dumps(data).encode(), {})

            def _send(self, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(200)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_args: Any) -> None:
                """Clients go away here: that is what is tested."""

        self._server = Server(("127.0.0.1", port), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def about(self, path: str) -> Any:
        """What GET answers; None: 404."""
        if path == "/v2":
            return {"name": "test", "version": "1", "extensions": ["binary_tensor_data"] if self.binary else []}
        if path in ("/v2/health/ready", "/readyz"):
            return {}
        if path == "/v1/model":
            return {"featureSchema": self.schema or ""}
        if path.startswith("/v2/models/m"):
            parameters = {} if self.schema is None else {"schema": self.schema}
            shapes = {"nodes": [-1, -1, self.width], "pod": [-1, P], "global": [-1, G], "mask": [-1, -1]}
            return {
                "name": "m",
                "inputs": [
                    {"name": name, "datatype": "BOOL" if name == "mask" else "FP32", "shape": shape}
                    for name, shape in shapes.items()
                ],
                "outputs": [{"name": "scores", "datatype": "FP32", "shape": [-1, -1]}],
                "parameters": parameters,
            }
        return None

    @property
    def inferences(self) -> int:
        """How many questions were asked."""
        return sum(1 for method, path in self.requests if method == "POST" and path != "/v1/outcome")

    def kill(self) -> None:
        """As a process that dies: connections break, the port is free."""
        self._server.shutdown()
        self._server.server_close()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._thread.join()
