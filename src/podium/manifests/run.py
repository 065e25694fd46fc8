"""Lists the Kubernetes objects that run `podium run` in a cluster, with the least rights that its plugins need.

Every scheduler binds pods, writes their conditions and events, keeps a lease and finds out who asks for its metrics.
All else follows from the plugins of the configuration. A scheduler beside the cluster's own must not have its lease:
where no profile is called default-scheduler and the configuration names no lease, it has the name of the Deployment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import yaml

from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.config.types import LeaderElection
from podium.kube.json_object import JsonObject
from podium.manifests.objects import IMAGE, to_yaml
from podium.manifests.plugin_files import asks_servers, secret_folders, secret_volumes, way_out
from podium.manifests.plugin_rights import allow_plugins
from podium.manifests.rights import Rights
from podium.manifests.workload import (
    CONFIG_FOLDER,
    config_map,
    config_mount,
    container,
    deployment,
    disruption_budget,
    probes,
    service,
    service_monitor,
)

CONFIG_FILE: Final = "scheduler.yaml"
PORT: Final = 10259
DEFAULT = "default-scheduler"


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
