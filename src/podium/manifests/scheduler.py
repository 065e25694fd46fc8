"""Lists the Kubernetes objects that run `podium run` in a cluster, with the least rights that its plugins need.

Every scheduler binds pods, writes their conditions and events, keeps a lease and finds out who asks for its metrics.
All else follows from the plugins of the configuration. A scheduler beside the cluster's own must not have its lease:
where no profile is called default-scheduler and the configuration names no lease, it has the name of the Deployment.

Also finds out which files the plugins of a configuration read, and which servers they ask, so that pods have both.

Arguments name tokens and certificates by their paths: `tokenFile`, and in `tls` `caFile`, `certFile` and `keyFile`, of
the plugin itself or of its `source`. Each folder of such files is a Secret of its own: `/var/run/podium/model/token`
comes from the Secret NAME-model, mounted at /var/run/podium/model. What every pod has is left out.

Where a plugin asks a server (`url`), a NetworkPolicy lets the pods out, in case that the namespace allows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.config.types import LeaderElection
from podium.kube.json_object import JsonObject
from podium.manifests.objects import (
    CONFIG_FOLDER,
    IMAGE,
    config_map,
    config_mount,
    container,
    deployment,
    disruption_budget,
    head,
    probes,
    service,
    service_monitor,
    to_yaml,
)
from podium.manifests.rights import Rights, allow_plugins

CONFIG_FILE: Final = "scheduler.yaml"
PORT: Final = 10259
DEFAULT = "default-scheduler"
OF_EVERY_POD: Final = "/var/run/secrets/kubernetes.io/"
MOST_CHARACTERS: Final = 63


class RunSettings(NamedTuple):
    """What the objects are called, and what else the process is given."""

    name: str = "podium"
    namespace: str = "kube-system"
    image: str = IMAGE
    shadow: bool = False
    """Whether it decides without binding."""
    monitored: bool = False
    """Whether the Prometheus operator is to scrape it."""
    plugins: Sequence[str] = ()
    """Options `--plugin` of the process: modules in the image, or files of CONFIG_FOLDER."""
    files: Mapping[str, str] = {}
    """Files of CONFIG_FOLDER beside the configuration."""
    kubernetes_version: str = ""
    """The minor by whose rules it decides; empty: the API server's."""


def manifest(config: SchedulerConfig, text: str | None, registry: Registry, settings: RunSettings) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied.

    `text` is the configuration as it was written; None: the process runs with the defaults.
    """
    name, namespace = settings.name, settings.namespace
    files = {**({} if text is None else {CONFIG_FILE: text}), **settings.files}
    replicas = 2 if settings.shadow or config.leader_election.leader_elect else 1
    volumes, mounts = secret_volumes(secret_folders(config, name))
    process = _container(config, settings, files, mounts)
    return [
        *rights(config, registry, settings),
        *([config_map(name, namespace, files)] if files else []),
        deployment(name, namespace, [process], replicas=replicas, files=files or None, critical=True, volumes=volumes),
        disruption_budget(name, namespace),
        service(name, namespace, PORT),
        *([way_out(name, namespace)] if asks_servers(config) else []),
        *([service_monitor(name, namespace)] if settings.monitored else []),
    ]


def without_kubeconfig(text: str, path: str) -> str:
    """A configuration without its kubeconfig, so that a pod uses its service account; comments that name the file go.

    The rest stays as it was written. Only what names the file in an unusual way, over several lines or by an anchor,
    is written again from its values.
    """
    named = re.escape(path)
    text = re.sub(rf"""(\bkubeconfig["']?\s*:\s*)["']?{named}["']?([\s,}}]|$)""", r'\1""\2', text)
    text = re.sub(rf"^[ \t]*#.*{named}.*\n|[ \t]+#.*{named}.*$", "", text, flags=re.MULTILINE)
    values = yaml.safe_load(text)
    if values["clientConnection"]["kubeconfig"]:
        values["clientConnection"]["kubeconfig"] = ""
        return to_yaml([values])
    return text


def rights(config: SchedulerConfig, registry: Registry, settings: RunSettings) -> list[JsonObject]:
    """The service account and all that it may do."""
    return process_rights(config, registry, settings).objects(settings.name, settings.namespace)


def process_rights(config: SchedulerConfig, registry: Registry, settings: RunSettings) -> Rights:
    """What `podium run` does, whatever the plugins, and what the plugins do."""
    found = Rights()
    allow_plugins(found, config, registry, shadow=settings.shadow)
    found.serve_metrics()
    if not settings.shadow:
        found.allow("", "pods", "get")  # where a pod is, after its binding was refused
        found.allow("", "pods/binding", "create")
        found.allow("", "pods/status", "patch")
        found.record_events()
        found.lead(lease_of(config, settings.name))
    return found


def lease_of(config: SchedulerConfig, name: str) -> LeaderElection:
    """The lease that the process keeps."""
    lease = config.leader_election
    beside = all(profile.scheduler_name != DEFAULT for profile in config.profiles)
    if beside and lease.resource_name == LeaderElection().resource_name:
        return msgspec.structs.replace(lease, resource_name=name)
    return lease


def _container(
    config: SchedulerConfig, settings: RunSettings, files: Mapping[str, str], mounts: list[JsonObject]
) -> JsonObject:
    lease = lease_of(config, settings.name).resource_name
    configured = [f"--config={CONFIG_FOLDER}/{CONFIG_FILE}"] if CONFIG_FILE in files else []
    arguments = ["run", *configured, "--log-format=json"]
    if settings.kubernetes_version:
        arguments.append(f"--kubernetes-version={settings.kubernetes_version}")
    if switched := config.rules.gates_switched:
        arguments.append(f"--feature-gates={','.join(switched)}")
    if settings.shadow:
        arguments.append("--shadow")
    elif lease != config.leader_election.resource_name:
        arguments.append(f"--leader-elect-resource-name={lease}")
    arguments += [f"--plugin={option}" for option in settings.plugins]
    given = {
        "args": arguments,
        "ports": [{"name": "https", "containerPort": PORT}],
        **probes(PORT, "/livez", "/readyz", scheme="HTTPS"),
        "volumeMounts": [*([config_mount()] if files else []), *mounts],
    }
    return container("podium", settings.image, "run", given)


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
