"""Lists the Kubernetes objects that run `podium run` in a cluster, with the least rights that its plugins need.

Every scheduler binds pods, writes their conditions and events, keeps a lease and finds out who asks for its metrics.
All else follows from the plugins of the configuration. A scheduler beside the cluster's own must not have its lease:
where no profile is called default-scheduler and the configuration names no lease, it has the name of the Deployment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.config.types import LeaderElection
from podium.kube.json_object import JsonObject
from podium.manifests.objects import IMAGE
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


def manifest(config: SchedulerConfig, text: str, registry: Registry, settings: RunSettings) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied; `text` is the configuration as it was written."""
    name, namespace = settings.name, settings.namespace
    files = {CONFIG_FILE: text, **settings.files}
    replicas = 2 if settings.shadow or config.leader_election.leader_elect else 1
    return [
        *rights(config, registry, settings),
        config_map(name, namespace, files),
        deployment(name, namespace, [_container(config, settings)], replicas=replicas, files=files, critical=True),
        disruption_budget(name, namespace),
        service(name, namespace, PORT),
        *([service_monitor(name, namespace)] if settings.monitored else []),
    ]


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


def _container(config: SchedulerConfig, settings: RunSettings) -> JsonObject:
    lease = lease_of(config, settings.name).resource_name
    arguments = ["run", f"--config={CONFIG_FOLDER}/{CONFIG_FILE}", "--log-format=json"]
    if config.gates:
        arguments.append(f"--feature-gates={','.join(f'{gate}=true' for gate in sorted(config.gates))}")
    if settings.shadow:
        arguments.append("--shadow")
    elif lease != config.leader_election.resource_name:
        arguments.append(f"--leader-elect-resource-name={lease}")
    arguments += [f"--plugin={option}" for option in settings.plugins]
    given = {
        "args": arguments,
        "ports": [{"name": "https", "containerPort": PORT}],
        **probes(PORT, "/livez", "/readyz", scheme="HTTPS"),
        "volumeMounts": [config_mount()],
    }
    return container("podium", settings.image, "run", given)
