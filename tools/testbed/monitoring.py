"""A real Prometheus and real node exporters on loopback, for tests of measured load.

    with NodeExporter() as one, PrometheusServer([Job("nodes", [Target(one.address, {"node": "a"})])]) as prometheus:
        prometheus.poll("node_load1", lambda samples: len(samples) == 1)

It scrapes every second and can be killed and started again, on the same port and the same data. All node exporters of
a machine tell of that machine; an address of its own (Linux has all of 127.0.0.0/8) or a label that its target is given
makes each stand for a node of its own.
"""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from tools.testbed.folders import OwnedFolder
from tools.testbed.ports import LOOPBACK, free_port
from tools.testbed.processes import Component, ComponentFailed

COLLECTORS = ("netdev", "cpu", "meminfo", "loadavg")


@dataclass(frozen=True)
class Target:
    """What is scraped (`host:port`), and the labels its series get."""

    address: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """Targets that are scraped the same way; `honor_labels` lets series keep labels that the target would overwrite.

    With a token they are scraped over HTTPS, whatever their certificate.
    """

    name: str
    targets: Sequence[Target]
    honor_labels: bool = False
    token: str = ""

    def config(self) -> dict[str, Any]:
        """As it stands in Prometheus' configuration."""
        secured = {
            "scheme": "https",
            "authorization": {"credentials": self.token},
            "tls_config": {"insecure_skip_verify": True},
        }
        return {
            "job_name": self.name,
            "honor_labels": self.honor_labels,
            "static_configs": [{"targets": [each.address], "labels": dict(each.labels)} for each in self.targets],
            **(secured if self.token else {}),
        }


class _Program:
    """One program of the test bed that serves HTTP on a port of its own."""

    name: str

    def __init__(self, host: str = LOOPBACK) -> None:
        self._component: Component | None = None
        self._folder: OwnedFolder | None = None
        self.host = host
        self.port = free_port()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def component(self) -> Component:
        assert self._component is not None, "it was not started"
        return self._component

    def start(self) -> None:
        """Build the program if need be, start it and wait until it is ready; once more after `kill`."""
        # Imported here, or `python -m tools.testbed.build` would find itself loaded already, by the package.
        from tools.testbed.build import MEASURED_LOAD, programs

        program = programs(*MEASURED_LOAD)[self.name]
        if self._folder is None:
            self._folder = OwnedFolder()
        folder = self._folder.path
        command: list[str | Path] = [program, *self._flags(folder)]
        self._component = Component(self.name, command, folder / f"{self.name}.log", url=self.url)
        try:
            self._component.wait_until_ready(self._ready, 60.0)
        except BaseException:
            self._component.stop()
            raise

    def kill(self) -> None:
        """SIGKILL; what it has stored stays."""
        self.component.kill()

    def stop(self) -> None:
        """End it and remove all it stored; may be called twice."""
        if self._component is not None:
            self._component.stop()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _flags(self, folder: Path) -> list[str]:
        raise NotImplementedError

    def _ready(self) -> bool:
        raise NotImplementedError


class NodeExporter(_Program):
    """A node exporter with only the collectors named, on any address of loopback."""

    name = "node_exporter"

    def __init__(self, host: str = LOOPBACK, *, collectors: Sequence[str] = COLLECTORS) -> None:
        super().__init__(host)
        self._collectors = collectors

    def _flags(self, folder: Path) -> list[str]:
        return [
            f"--web.listen-address={self.address}",
            "--collector.disable-defaults",
            *(f"--collector.{name}" for name in self._collectors),
            "--log.level=warn",
        ]

    def _ready(self) -> bool:
        return _status(f"{self.url}/") == 200


class PrometheusServer(_Program):
    """Prometheus that scrapes these jobs, every second unless it says otherwise."""

    name = "prometheus"

    def __init__(self, jobs: Sequence[Job], *, scrape_interval: str = "1s", rules: Sequence[Path] = ()) -> None:
        super().__init__()
        self._jobs = jobs
        self._scrape_interval = scrape_interval
        self._rules = rules

    def restart(self) -> None:
        """Start again after `kill`, on the same port and data."""
        self.start()

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The samples of an instant query: labels and value."""
        form = urllib.parse.urlencode({"query": expression}).encode()
        with urllib.request.urlopen(f"{self.url}/api/v1/query", form, timeout=30.0) as answer:
            found: dict[str, Any] = json.load(answer)
        return [(sample["metric"], float(sample["value"][1])) for sample in found["data"]["result"]]

    def rules(self) -> list[dict[str, Any]]:
        """Every rule, with its health and its alerts."""
        with urllib.request.urlopen(f"{self.url}/api/v1/rules", timeout=30.0) as answer:
            found: dict[str, Any] = json.load(answer)
        return [rule for group in found["data"]["groups"] for rule in group["rules"]]

    def poll(
        self, expression: str, until: Callable[[list[tuple[dict[str, str], float]]], bool], *, timeout: float = 60.0
    ) -> list[tuple[dict[str, str], float]]:
        """Query until `until(samples)` holds; ComponentFailed with the last samples if it never does."""
        deadline = time.monotonic() + timeout
        while not until(samples := self.query(expression)):
            if time.monotonic() > deadline:
                raise ComponentFailed(f"after {timeout:.0f} s {expression} still gave {samples[:10]}")
            time.sleep(0.1)
        return samples

    def _flags(self, folder: Path) -> list[str]:
        config = folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump(self._config()))
        return [
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--log.level=warn",
        ]

    def _config(self) -> dict[str, Any]:
        return {
            "global": {
                "scrape_interval": self._scrape_interval,
                "scrape_timeout": self._scrape_interval,
                "evaluation_interval": self._scrape_interval,
            },
            "rule_files": [str(each) for each in self._rules],
            "scrape_configs": [job.config() for job in self._jobs],
        }

    def _ready(self) -> bool:
        return _status(f"{self.url}/-/ready") == 200


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5.0) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except OSError:
        return 0
