"""Starts `podium up` in the background, and waits until its scheduler stands or the start has failed.

The new process is handed a pipe. It writes there what it is once all of it stands; where the pipe ends without a word,
so has the process, and its standard error says why.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from podium_cluster.up.running_clusters import RunningCluster, writable_folder

READY_OPTION: Final = "--ready-fd"


class StartFailedError(Exception):
    """The process ended with `code`; the text is what it said on standard error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Started(msgspec.Struct):
    """What the new process says of itself."""

    cluster: RunningCluster
    welcome: str
    """What it printed when it stood."""


def start_in_background(arguments: Sequence[str]) -> tuple[Started, str]:
    """Start `podium up` with these arguments; what it says of itself, and its standard error, such as warnings."""
    log = writable_folder() / f"up-new-{os.getpid()}.log"
    ready, to_child = os.pipe()
    command = [sys.executable, "-P", "-m", "podium", "up", *arguments, "--no-view", f"{READY_OPTION}={to_child}"]
    with (
        os.fdopen(ready) as answer,
        os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out,
        tempfile.TemporaryFile("w+", errors="replace") as errors,
    ):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if sys.stdin.isatty() else None,
            stdout=out,
            stderr=errors,
            pass_fds=(to_child,),
            start_new_session=True,
        )
        os.close(to_child)
        try:
            message = answer.read()
            code = None if message else process.wait()
        except BaseException:  # Ctrl-C: what was not said to run does not run
            process.terminate()
            process.wait()
            log.unlink()
            raise
        errors.seek(0)
        warnings = errors.read().strip()
    if code is not None:
        log.unlink()
        raise StartFailedError(code, warnings)
    started = msgspec.json.decode(message, type=Started)
    log.rename(started.cluster.log)
    process.returncode = 0  # it goes on without this process
    return started, warnings


def say_ready(descriptor: int, cluster: RunningCluster, welcome: str) -> None:
    """Tell who started this process that it stands; what goes wrong from now on is in the log."""
    sys.stderr.flush()
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())
    with os.fdopen(descriptor, "wb") as pipe:
        pipe.write(msgspec.json.encode(Started(cluster, welcome)))


def log_of(kubeconfig: Path, port: int) -> str:
    """Where the log of a cluster in the background lies."""
    return str(kubeconfig.with_name(f"up-{port}.log"))
