"""An exporter whose numbers the test sets: gauges that stand still and counters that grow by so much a second.

    with Exporter() as exporter:
        exporter.set("disk_wear", 0.3, node="a")
        exporter.grow("node_network_receive_bytes_total", 10e6, node="a", device="eth0")
        PrometheusServer([Job("given", [Target(exporter.address)], honor_labels=True)])

Prometheus scrapes it like any other. One stands for any number of nodes: each series names its own.
"""

import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from tools.testbed.ports import LOOPBACK

_Key = tuple[str, tuple[tuple[str, str], ...]]


class _Line(NamedTuple):
    value: float
    since: float
    per_second: float

    def at(self, now: float) -> float:
        return self.value + self.per_second * (now - self.since)


class Exporter:
    """Serves `/metrics` at `address` from `with` on, or between `start()` and `stop()`."""

    def __init__(self) -> None:
        self.scrapes = 0
        self._lines: dict[_Key, _Line] = {}
        self._lock = threading.Lock()
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.text().encode()
                exporter.scrapes += 1
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> "Exporter":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """May be called twice."""
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{LOOPBACK}:{self._server.server_port}"

    def set(self, metric: str, value: float, **labels: str) -> None:
        """A number that stays as it is."""
        with self._lock:
            self._lines[_key(metric, labels)] = _Line(value, time.monotonic(), 0.0)

    def set_all(self, metric: str, values: Iterable[tuple[str, float]], label: str = "node") -> None:
        """Many numbers at once, each with one label."""
        now = time.monotonic()
        with self._lock:
            self._lines.update((_key(metric, {label: name}), _Line(value, now, 0.0)) for name, value in values)

    def grow(self, metric: str, per_second: float, **labels: str) -> None:
        """A counter that goes on from where it is, by so much a second."""
        now, key = time.monotonic(), _key(metric, labels)
        with self._lock:
            line = self._lines.get(key)
            self._lines[key] = _Line(0.0 if line is None else line.at(now), now, per_second)

    def text(self) -> str:
        now = time.monotonic()
        with self._lock:
            lines = list(self._lines.items())
        return "".join(f"{_written(key)} {line.at(now)!r}\n" for key, line in lines)


def _key(metric: str, labels: dict[str, str]) -> _Key:
    return metric, tuple(sorted(labels.items()))


def _written(key: _Key) -> str:
    metric, labels = key
    inside = ",".join(f'{name}="{value}"' for name, value in labels)
    return f"{metric}{{{inside}}}"
