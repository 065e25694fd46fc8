"""A real MLServer that serves a scorer, in an environment of its own.

    with MlServer(onnx) as server:
        ask(server.url, server.MODEL)

MLServer brings 67 packages that Podium has no use for, so they go into a virtual environment in the cache of the test
bed, made once for each state of `mlserver/requirements.txt`. The runtime that reads ONNX files is the one that the
documentation gives to users: examples/model-server.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from tools.testbed.availability import TestbedUnavailable
from tools.testbed.build import cache_folder, only_one_process
from tools.testbed.folders import OwnedFolder
from tools.testbed.ports import LOOPBACK, free_port
from tools.testbed.processes import Component

REQUIREMENTS = Path(__file__).parent / "mlserver" / "requirements.txt"
EXAMPLE = Path(__file__).parents[2] / "examples" / "model-server"


def mlserver_program() -> Path:
    """The command `mlserver`, installed first where it is missing."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + version.encode()).hexdigest()[:16]
    target = cache_folder() / f"mlserver-{digest}"
    program = target / "bin" / "mlserver"
    if (target / "complete").exists():
        return program
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_one_process(target.with_suffix(".lock")):
        if not (target / "complete").exists():  # another process may have finished it while this one waited
            shutil.rmtree(target, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(target))
            _run(str(target / "bin" / "pip"), "install", "--quiet", "--requirement", str(REQUIREMENTS))
            (target / "complete").touch()
    return program


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        raise TestbedUnavailable("MLServer", f"its environment cannot be made ({' '.join(lines[-1].split())})")


class MlServer:
    """MLServer with one model, on ports of its own; it can be killed and started again."""

    MODEL = "placement"

    def __init__(self, scorer: bytes) -> None:
        self._scorer = scorer
        self._folder: OwnedFolder | None = None
        self._component: Component | None = None
        self._ports = [free_port() for _ in range(3)]

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._ports[0]}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Install it if need be, start it, and wait until the model is ready; once more after `kill`."""
        program = mlserver_program()
        if self._folder is None:
            self._folder = OwnedFolder()
            self._write(self._folder.path / "served")
        folder = self._folder.path
        log = folder / "mlserver.log"
        self._component = Component("mlserver", [program, "start", folder / "served"], log, url=self.url)
        try:
            self._component.wait_until_ready(self._ready, 120.0)
        except BaseException:
            self._component.stop()
            raise

    def kill(self) -> None:
        """SIGKILL."""
        assert self._component is not None, "it was not started"
        self._component.kill()

    def stop(self) -> None:
        """End it; may be called twice."""
        if self._component is not None:
            self._component.stop()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _write(self, folder: Path) -> None:
        shutil.copytree(EXAMPLE, folder)
        (folder / "scorer.onnx").write_bytes(self._scorer)
        settings = json.loads((folder / "settings.json").read_text())
        names = ("http_port", "grpc_port", "metrics_port")
        ports = dict(zip(names, self._ports, strict=True))
        (folder / "settings.json").write_text(json.dumps({**settings, "host": LOOPBACK, **ports}))

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/v2/models/{self.MODEL}/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
