"""A model server for tests: the Open Inference Protocol, always for the last or the first node."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from podium_lab.models.schema import SCHEMA_HASH


@contextmanager
def scoring_server(best: str) -> Iterator[str]:
    """The URL of a server that scores nodes by their position."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({"name": "any", "inputs": [], "outputs": [], "parameters": {"schema": SCHEMA_HASH}})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            nodes = next(each for each in asked["inputs"] if each["name"] == "nodes")["shape"][1]
            scores = list(range(nodes)) if best == "last" else list(range(nodes, 0, -1))
            output = {"name": "scores", "shape": [1, nodes], "datatype": "FP32", "data": scores}
            self._answer({"model_name": "any", "id": asked.get("id", ""), "outputs": [output]})

        def _answer(self, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
