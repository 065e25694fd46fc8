"""Knows which clusters of `podium up` run on this machine: a file for each, beside its kubeconfig.

The process holds a lock on its file for as long as it lives. So a file without a lock is what a killed process left,
and goes; and a number that another process has by now is never taken for the cluster's.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from podium_cluster.up.kubeconfig import state_folders


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
