"""Builds objects by their kind and name, and writes them as YAML.

Also makes the Deployment of a process, and what belongs to it: disruption budget, service, monitor.

Every pod runs as an ordinary user on a read-only file system, with no capabilities and the runtime's seccomp profile.
Two replicas stand on different nodes where there are two, and only one of them may be away at a time. A process that
does not take turns by a lease has one, and an update ends it before it starts the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import yaml

from podium.kube.json_object import JsonObject
from podium.packages import version

IMAGE = f"podium:{version()}"
USER: Final = 65532
CONFIG_FOLDER: Final = "/etc/podium"
CHECKSUM: Final = "podium.dev/config-sha256"
"""An annotation of pods: a changed configuration makes other pods, which read it."""


def head(
    version: str, kind: str, name: str, namespace: str = "", labels: Mapping[str, str] | None = None
) -> JsonObject:
    """An object with nothing but its kind and its name."""
    metadata: JsonObject = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def to_yaml(objects: Iterable[JsonObject]) -> str:
    """The objects as one stream of documents, made to be read."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Text of several lines as such, lists of words on one line, nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    words = all(isinstance(each, str) for each in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=words)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


class Resources(NamedTuple):
    """What a container asks for, and the memory it may not exceed."""

    cpu: str
    memory: str
    most_memory: str


RESOURCES: Final = {
    "run": Resources("100m", "256Mi", "1Gi"),
    "extender": Resources("100m", "128Mi", "512Mi"),
    "controller": Resources("50m", "128Mi", "512Mi"),
    "annotate": Resources("50m", "128Mi", "512Mi"),
    "kube-scheduler": Resources("100m", "64Mi", "512Mi"),
}
"""By process; docs/how-to/install-on-a-cluster.md says how they were measured."""


def probes(port: int, live: str, ready: str, *, scheme: str = "HTTP") -> JsonObject:
    """The probes of a container that serves its health."""
    at = {"port": port, "scheme": scheme}
    return {
        "livenessProbe": {"httpGet": {"path": live, **at}, "initialDelaySeconds": 15, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": ready, **at}, "periodSeconds": 5},
    }


def container(name: str, image: str, process: str, settings: JsonObject) -> JsonObject:
    """A container of a process; `settings` are its arguments, ports, probes and variables."""
    cpu, memory, most = RESOURCES[process]
    mounts = [*settings.get("volumeMounts", ()), {"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108  of the container
    return {
        "name": name,
        "image": image,
        **{key: value for key, value in settings.items() if key != "volumeMounts"},
        "volumeMounts": mounts,
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def config_map(name: str, namespace: str, files: Mapping[str, str]) -> JsonObject:
    """Files that a process is given in CONFIG_FOLDER."""
    return {**head("v1", "ConfigMap", name, namespace), "data": dict(files)}


def config_mount() -> JsonObject:
    return {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}


def deployment(
    name: str,
    namespace: str,
    containers: Sequence[JsonObject],
    *,
    replicas: int = 2,
    files: Mapping[str, str] | None = None,
    critical: bool = False,
    volumes: Sequence[JsonObject] = (),
) -> JsonObject:
    """Pods of these containers; `files` are those of the ConfigMap of that name, which is mounted."""
    labels = {"app": name}
    metadata: JsonObject = {"labels": labels}
    mounted: list[JsonObject] = [*volumes, {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}}]
    if files is not None:
        text = "".join(f"{file}\n{files[file]}\n" for file in sorted(files))
        metadata["annotations"] = {CHECKSUM: hashlib.sha256(text.encode()).hexdigest()}
        mounted.insert(0, {"name": "config", "configMap": {"name": name}})
    spec: JsonObject = {
        "serviceAccountName": name,
        **({"priorityClassName": "system-cluster-critical"} if critical else {}),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"topologySpreadConstraints": [_on_different_nodes(labels)]} if replicas > 1 else {}),
        "containers": list(containers),
        "volumes": mounted,
    }
    return {
        **head("apps/v1", "Deployment", name, namespace, labels),
        "spec": {
            "replicas": replicas,
            **({"strategy": {"type": "Recreate"}} if replicas == 1 else {}),
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": spec},
        },
    }


def _on_different_nodes(labels: JsonObject) -> JsonObject:
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }


def disruption_budget(name: str, namespace: str) -> JsonObject:
    """Only one replica may be away at a time."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}
    return {**head("policy/v1", "PodDisruptionBudget", name, namespace), "spec": spec}


def service(name: str, namespace: str, port: int) -> JsonObject:
    """Where metrics are served, over HTTPS."""
    spec = {"selector": {"app": name}, "ports": [{"name": "https", "port": port, "targetPort": port}]}
    return {**head("v1", "Service", name, namespace, {"app": name}), "spec": spec}


def service_monitor(name: str, namespace: str) -> JsonObject:
    """Has the Prometheus operator scrape the service; Prometheus shows the token of its own account."""
    endpoint = {
        "port": "https",
        "scheme": "https",
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {"insecureSkipVerify": True},  # the certificate is self-signed
    }
    spec = {"selector": {"matchLabels": {"app": name}}, "endpoints": [endpoint]}
    return {**head("monitoring.coreos.com/v1", "ServiceMonitor", name, namespace, {"app": name}), "spec": spec}
