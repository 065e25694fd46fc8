"""How `podium run` is started beside the real components, as a process of its own.

It is the package that the tests import, under the interpreter they run in, whatever the working directory. Podium signs
its own serving certificate where it is given none, as kube-scheduler does, so its clients trust any certificate.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import podium
from tools.testbed.connections import ConnectionPool
from tools.testbed.ports import LOOPBACK, free_port
from tools.testbed.processes import Component

RUNS = "podium runs"
"""What the log says when everything is listed and pods are taken up."""


class Command(NamedTuple):
    arguments: list[str | Path]
    url: str  # where it serves; empty when it does not


def podium_command(config: Path, kubeconfig: Path, flags: Sequence[str]) -> Command:
    """`podium run` on a port of its own, unless the flags name one."""
    arguments: list[str | Path] = [sys.executable, "-m", "podium", "run"]
    arguments += ["--config", config, "--kubeconfig", kubeconfig, "--bind-address", LOOPBACK]
    given = [flag.partition("=")[2] for flag in flags if flag.startswith("--secure-port=")]
    port = int(given[-1]) if given else free_port()
    if not given:
        arguments.append(f"--secure-port={port}")
    return Command([*arguments, *flags], f"https://{LOOPBACK}:{port}" if port else "")


def podium_config(config: Path | Mapping[str, Any] | None) -> dict[str, Any]:
    """The configuration as a whole document; no leader election unless it asks for it."""
    given: dict[str, Any] = yaml.safe_load(config.read_text()) if isinstance(config, Path) else dict(config or {})
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **given,
        "leaderElection": {"leaderElect": False, **given.get("leaderElection", {})},
    }


def podium_environment() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(podium.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}


@contextmanager
def podium_probe(component: Component) -> Iterator[Callable[[], bool]]:
    """A function that says whether Podium is ready. It keeps its connection: each one costs Podium a handshake."""
    if not component.url:
        yield lambda: RUNS in component.log_text()
        return
    pool = ConnectionPool(component.url, ca_path=None, timeout=5.0)

    def answers() -> bool:
        try:
            return pool.request("GET", "/readyz").status == 200
        except OSError:
            return False

    try:
        yield answers
    finally:
        pool.close()
