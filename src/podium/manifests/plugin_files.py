"""Finds out which files the plugins of a configuration read, and which servers they ask, so that pods have both.

Arguments name tokens and certificates by their paths: `tokenFile`, and in `tls` `caFile`, `certFile` and `keyFile`, of
the plugin itself or of its `source`. Each folder of such files is a Secret of its own: `/var/run/podium/model/token`
comes from the Secret NAME-model, mounted at /var/run/podium/model. What every pod has is left out.

Where a plugin asks a server (`url`), a NetworkPolicy lets the pods out, in case that the namespace allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from podium.config.resolved import SchedulerConfig
from podium.kube.json_object import JsonObject
from podium.manifests.objects import head

OF_EVERY_POD: Final = "/var/run/secrets/kubernetes.io/"
MOST_CHARACTERS: Final = 63


def secret_folders(config: SchedulerConfig, name: str) -> dict[str, str]:
    """The name of the Secret by the folder that it is mounted at.

    >>> _secret_of("podium", "/var/run/podium/model")
    'podium-model'
    """
    folders = {str(PurePosixPath(file).parent) for args in _arguments(config) for file in _files_of(args)}
    return {folder: _secret_of(name, folder) for folder in sorted(folders)}


def asks_servers(config: SchedulerConfig) -> bool:
    """Whether some plugin asks a server for its decisions."""
    return any(getattr(args, "url", "") for args in _arguments(config))


def secret_volumes(folders: dict[str, str]) -> tuple[list[JsonObject], list[JsonObject]]:
    """The volumes of a pod, and the mounts of its container."""
    volumes = [{"name": secret, "secret": {"secretName": secret}} for secret in folders.values()]
    mounts = [{"name": secret, "mountPath": folder, "readOnly": True} for folder, secret in folders.items()]
    return volumes, mounts


def way_out(name: str, namespace: str) -> JsonObject:
    """A NetworkPolicy that lets the pods reach the API server, Prometheus, and the servers that plugins ask."""
    spec = {"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Egress"], "egress": [{}]}
    return {**head("networking.k8s.io/v1", "NetworkPolicy", name, namespace), "spec": spec}


def _arguments(config: SchedulerConfig) -> Iterator[Any]:
    for profile in config.profiles:
        yield from profile.args.values()


def _files_of(args: Any) -> Iterator[str]:
    for holder in (args, getattr(args, "source", None)):
        tls = getattr(holder, "tls", None)
        files = [
            getattr(holder, "token_file", ""),
            *(getattr(tls, f"{each}_file", "") for each in ("ca", "cert", "key")),
        ]
        yield from (file for file in files if file.startswith("/") and not file.startswith(OF_EVERY_POD))


def _secret_of(name: str, folder: str) -> str:
    last = "".join(letter if letter.isalnum() else "-" for letter in PurePosixPath(folder).name.lower()).strip("-")
    return f"{name}-{last or 'files'}"[:MOST_CHARACTERS].rstrip("-")
