"""The embedded API as a process of its own, with the surface of the test bed's ControlPlane, so that one test can run
against both.

    with EmbeddedServer() as plane:
        plane.client.create(node)
        plane.kubectl("get", "nodes")
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from tools.testbed.apiclient import ApiClient
from tools.testbed.folders import OwnedFolder

READY = "serving on "


class EmbeddedServer:
    """`data` keeps the objects in a file; `flags` are more of the server's own; `module` is what is run instead of the
    API alone. Start and stop it, or use `with`."""

    def __init__(
        self, *, data: Path | None = None, flags: Sequence[str] = (), module: str = "podium_cluster.apiserver"
    ) -> None:
        self._module = module
        self._flags = [*flags, *([] if data is None else [f"--data={data}"])]
        self._process: subprocess.Popen[str] | None = None
        self._folder: OwnedFolder | None = None
        self.token = "any"

    def __enter__(self) -> "EmbeddedServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, port: int = 0) -> None:
        self._folder = OwnedFolder()
        self.folder = self._folder.path
        self.log_path = self.folder / "apiserver.log"
        source = Path(__file__).parents[3] / "src"
        command = [sys.executable, "-m", self._module, f"--port={port}", *self._flags]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        with self.log_path.open("w") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith(READY):
            self._process.wait()
            why = line + self.log_path.read_text()
            self.stop()
            raise RuntimeError(f"the embedded API did not start: {why}")
        self.server = line.removeprefix(READY).strip()
        self.kubeconfig_path = self._write_kubeconfig()
        self.client = self.new_client()

    def stop(self) -> None:
        """End it in an orderly way; may be called twice."""
        if hasattr(self, "client"):
            self.client.close()
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def kill(self) -> None:
        """End it as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def new_client(self, *, workers: int = 8) -> ApiClient:
        """Another client; the caller closes it."""
        return ApiClient(self.server, ca_path=None, token=self.token, workers=workers)

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """What `kubectl ARGUMENTS` prints; CalledProcessError with its errors if it fails."""
        from tools.testbed.build import CONTROL_PLANE, programs

        command = [str(programs(*CONTROL_PLANE)["kubectl"]), *arguments]
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig_path), "HOME": str(self.folder)}
        result = subprocess.run(
            command, input=stdin, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        if check and result.returncode != 0:
            raise subprocess.CalledProcessError(result.returncode, command, result.stdout, result.stderr)
        return result.stdout

    def _write_kubeconfig(self) -> Path:
        path = self.folder / "kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": {"server": self.server}}],
            "users": [{"name": "embedded", "user": {}}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
            "current-context": "embedded",
        }
        path.write_text(yaml.safe_dump(content))
        return path
