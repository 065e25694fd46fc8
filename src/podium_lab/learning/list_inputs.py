"""Makes inputs of units of the lists that learning reads, and a folder of them where a unit runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from podium_lab.learning.lists import NODE_LIST, find_list, nodes_path
from podium_lab.units.inputs import UnitInputs
from podium_lab.units.store import UnitStore

NODES, LIST = "nodes", "list:"
"""Names of inputs: the node list, and each pod list as it was typed."""


def put_lists(data: Path, names: Iterable[str], store: UnitStore) -> dict[str, str]:
    """Put the node list and some pod lists into a store; their hashes by the names of inputs."""
    found = {NODES: store.put_input(nodes_path(data).read_bytes())}
    for name in names:
        digest = store.put_input(find_list(name, data).path.read_bytes())
        found[LIST + list_name(name, digest)] = digest
    return found


def list_name(name: str, digest: str) -> str:
    """What a unit calls a list: its name, or for a path what it holds, so that no result depends on where it lies.

    >>> list_name("default", "3fa9" * 16), list_name("mine/pods.csv", "3fa9" * 16)
    ('default', '3fa93fa93fa93fa9')
    """
    return digest[:16] if "/" in name or name.endswith(".csv") else name


def lists_folder(inputs: UnitInputs, digests: dict[str, str]) -> Path:
    """A folder that has the lists under the names that `find_list` knows."""
    lists = {name.removeprefix(LIST): digest for name, digest in digests.items() if name.startswith(LIST)}
    files = {f"openb_pod_list_{name}.csv": digest for name, digest in lists.items()}
    return inputs.folder({NODE_LIST: digests[NODES], **files})
