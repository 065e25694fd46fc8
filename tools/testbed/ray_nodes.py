"""Ray in an environment of its own, and clusters of two nodes in two network namespaces.

The environment has Ray, pyarrow and what Podium depends on, at the versions of deploy/image/requirements.lock, and not
Podium: its nodes cannot import it but from what a task brings. It is made once per machine, in the cache of the test
bed. A node sees no file of this checkout: an empty file system is mounted over it.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tools.testbed.availability import TestbedUnavailable
from tools.testbed.build import cache_folder, only_one_process, say

RAY = ("ray==2.60.0", "pyarrow==26.0.1")
ROOT = Path(__file__).parents[2]
HEAD, OTHER, PORT = "10.77.0.1", "10.77.0.2", 6379


def ray_environment() -> Path:
    """The folder of a virtual environment with Ray; made first where the cache lacks it."""
    pins = _pinned()
    named = hashlib.sha256("\n".join((*RAY, *pins, sys.version)).encode()).hexdigest()[:16]
    target = cache_folder() / f"ray-{named}"
    if (target / "ready").exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_one_process(target.with_suffix(".lock")):
        if not (target / "ready").exists():
            say(f"installing {' and '.join(RAY)}: about a minute, only this once")
            shutil.rmtree(target, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", target], check=True)
            uv = Path(sys.executable).parent / "uv"
            command: list[str | Path] = [uv, "pip", "install", "-q", "--python", target / "bin" / "python", *RAY, *pins]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode:
                reason = " ".join(made.stderr.split()[-30:])
                raise TestbedUnavailable("Ray", f"it could not be installed ({reason})")
            (target / "ready").touch()
    return target


def _pinned() -> list[str]:
    lines = (ROOT / "deploy" / "image" / "requirements.lock").read_text().splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith((" ", "#", "\t"))]


def site_packages(environment: Path) -> Path:
    """What to put on PYTHONPATH to have its packages."""
    (found,) = environment.glob("lib/python*/site-packages")
    return found


class RayNodes:
    """A cluster of a head and another node, one core each, in namespaces that a cable joins."""

    def __init__(self) -> None:
        if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare"))):
            raise TestbedUnavailable("network namespaces", "they need root, and the commands ip and unshare")
        self.environment = ray_environment()
        self._names = [f"podium-ray-{os.getpid()}-{side}" for side in "ab"]
        self._folder = Path(tempfile.mkdtemp(prefix="podium-ray-"))
        self._nodes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "RayNodes":
        try:
            self._join()
            self._start(
                0, "--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={self._folder / 'ray'}"
            )
            self._await("head", lambda log: "will now block" in log)
            self._start(1, f"--address={HEAD}:{PORT}")
            self._await("other", lambda log: "will now block" in log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(self._names):
            for pid in self._pids(name):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for node in self._nodes:
            node.wait()
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def command(self) -> list[str]:
        """What begins a command that is to run on the head, which sees this checkout."""
        return ["ip", "netns", "exec", self._names[0], sys.executable]

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of such a command."""
        return {"RAY_ADDRESS": f"{HEAD}:{PORT}", "PYTHONPATH": str(site_packages(self.environment))}

    def tasks(self, side: int) -> list[int]:
        """The processes of a node that run a task now."""
        found = []
        for pid in self._pids(self._names[side]):
            with suppress(OSError):
                if b"ray::run_remote" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def lose(self) -> None:
        """End every process of the other node at once."""
        for pid in self._pids(self._names[1]):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _join(self) -> None:
        one, other = self._names
        for name in self._names:
            _ip("netns", "add", name)
        _ip("link", "add", "veth0", "netns", one, "type", "veth", "peer", "name", "veth0", "netns", other)
        for name, address in zip(self._names, (HEAD, OTHER), strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "veth0")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "veth0", "up")

    def _start(self, side: int, *flags: str) -> None:
        address = (HEAD, OTHER)[side]
        ray = self.environment / "bin" / "python"
        start = f"exec {ray} -m ray.scripts.scripts start {' '.join(flags)} --node-ip-address={address} --num-cpus=1 "
        script = f"mount -t tmpfs none {ROOT} && cd / && {start} --object-store-memory=100000000 --block"
        command = ["ip", "netns", "exec", self._names[side], "unshare", "-m", "sh", "-c", script]
        variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "RAY_ADDRESS")}
        variables |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_MEMORY_MONITOR": "1"}
        with self._log(side).open("wb") as log:
            self._nodes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=variables))

    def _log(self, side: int) -> Path:
        return self._folder / f"{side}.log"

    def _await(self, what: str, ready: Callable[[str], bool]) -> None:
        side, deadline = len(self._nodes) - 1, time.monotonic() + 90
        while not ready(text := self._log(side).read_text()):
            if self._nodes[-1].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the {what} node of Ray did not start:\n{text[-3000:]}")
            time.sleep(0.1)

    def _pids(self, name: str) -> list[int]:
        found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
