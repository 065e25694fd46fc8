"""Writes the kubeconfig of an embedded cluster: one file for each port, in the user's folder for program state.

The name is the same at every start, so a shell that has exported it goes on working. The file ends with the cluster.
"""

import os
import tempfile
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
