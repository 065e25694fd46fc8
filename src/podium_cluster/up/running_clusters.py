"""Knows which clusters of `podium up` run on this machine: a file for each, beside its kubeconfig.

The process holds a lock on its file for as long as it lives. So a file without a lock is what a killed process left,
and goes; and a number that another process has by now is never taken for the cluster's.

The kubeconfig of an embedded cluster is one file for each port, in the user's folder for program state.

The name is the same at every start, so a shell that has exported it goes on working. The file ends with the cluster.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

_NAME = "podium-up"


def write_kubeconfig(server: str, port: int, folder: Path | None = None) -> Path:
    """Write the file and say where it is."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": server}}],
        "users": [{"name": _NAME, "user": {}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    path = (folder or writable_folder()) / f"kubeconfig-{port}"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content)) + b"\n")  # JSON is YAML
    return path


def writable_folder() -> Path:
    """The first of the folders for state that can be written, made where it is missing; raises OSError without one."""
    for folder in state_folders():
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            failure = error
        else:
            return folder
    raise failure


def state_folders() -> list[Path]:
    """The user's own folder for state; and one of temporary files, where that cannot be written."""
    return [state_folder(), Path(tempfile.gettempdir()) / f"podium-{os.getuid()}"]


def state_folder() -> Path:
    """Where programs keep state of a user: $XDG_STATE_HOME/podium."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "podium"


class RunningCluster(msgspec.Struct, frozen=True):
    """What is known of a cluster without asking it."""

    port: int
    pid: int
    since: str
    url: str
    kubeconfig: str
    log: str = ""
    """Of one in the background."""


@contextmanager
def registered(cluster: RunningCluster) -> Iterator[None]:
    """While this lasts, others find the cluster."""
    path = Path(cluster.kubeconfig).with_name(f"up-{cluster.port}.json")
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            break
        os.close(file)  # another command removed it as what a killed process had left
    try:
        os.ftruncate(file, 0)
        os.write(file, msgspec.json.encode(cluster))
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def running_clusters() -> list[RunningCluster]:
    """Those of this user, by port."""
    found = []
    for path in (path for folder in state_folders() for path in folder.glob("up-*.json")):
        with suppress(OSError, msgspec.DecodeError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append(msgspec.json.decode(file.read(), type=RunningCluster))
            else:
                path.unlink()
    return sorted(found, key=lambda cluster: cluster.port)


def end(cluster: RunningCluster, seconds: float) -> bool:
    """Ask a cluster's process to end, and wait until it has; False where it takes longer."""
    try:
        process = os.pidfd_open(cluster.pid)
    except ProcessLookupError:
        return True
    try:
        if cluster not in running_clusters():  # looked at after the process is held: its number cannot change hands
            return True
        signal.pidfd_send_signal(process, signal.SIGTERM)
        return bool(select.select([process], [], [], seconds)[0])
    finally:
        os.close(process)
