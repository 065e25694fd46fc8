"""Lists the Kubernetes objects that run `podium run` in a cluster, with the least rights that its plugins need.

The cluster's own roles `system:kube-scheduler` and `system:volume-scheduler` are what every scheduler needs. A role of
its own adds what these leave out: the lease by its name, and what plugins of the configuration declare beyond it
(custom resources, other built-in kinds, annotations of pods, what they learn).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from podium.client import RESOURCES, WATCHED
from podium.config.feature_gates import Gates
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.framework.plugin import Plugin
from podium.kube import PodGroup
from podium.kube.json_object import JsonObject
from podium.serving.manifests import RBAC, account_of, binding, confined, head, rule, unprivileged

CONFIG_FOLDER, CONFIG_FILE = "/etc/podium", "scheduler.yaml"
READ = ("get", "list", "watch")


def manifest(
    config: SchedulerConfig, text: str, registry: Registry, *, name: str, namespace: str, image: str
) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied; `text` is the configuration as it was written."""
    return [
        *rights(config, registry, name=name, namespace=namespace),
        {**head("v1", "ConfigMap", name, namespace), "data": {CONFIG_FILE: text}},
        _deployment(name, namespace, image, config.gates),
    ]


def rights(config: SchedulerConfig, registry: Registry, *, name: str, namespace: str) -> list[JsonObject]:
    """The service account and all that it may do."""
    account, lease = account_of(name, namespace), config.leader_election
    objects = [
        head("v1", "ServiceAccount", name, namespace),
        binding(account, "ClusterRole", f"{name}-kube-scheduler", "system:kube-scheduler"),
        binding(account, "ClusterRole", f"{name}-volume-scheduler", "system:volume-scheduler"),
        binding(account, "Role", f"{name}-authentication", "extension-apiserver-authentication-reader", "kube-system"),
    ]
    rules = plugin_rules(config, registry)
    if rules:
        objects += [{**head(RBAC, "ClusterRole", name), "rules": rules}, binding(account, "ClusterRole", name, name)]
    if lease.leader_elect:
        leases = rule("coordination.k8s.io", ["leases"], ["get", "update"], [lease.resource_name])
        place = lease.resource_namespace
        objects += [
            {**head(RBAC, "Role", name, place), "rules": [leases]},
            binding(account, "Role", name, name, place),
        ]
    return objects


def plugin_rules(config: SchedulerConfig, registry: Registry) -> list[JsonObject]:
    """What the plugins of all profiles declare that kube-scheduler's own roles leave out."""
    plugins = list(_plugins(config, registry))
    groups: dict[str, list[str]] = {}
    for plugin in plugins:
        for kind in plugin.looks_at or ():
            if RESOURCES[kind] not in WATCHED and kind is not PodGroup:  # kube-scheduler's role has it, with the gate
                _add(groups, RESOURCES[kind].group, RESOURCES[kind].plural)
        for resource in plugin.resources:
            plural, _, group = resource.partition("/")[0].partition(".")
            _add(groups, group, plural)
    rules = [rule(group, sorted(plurals), READ) for group, plurals in sorted(groups.items())]
    if any(plugin.annotates_pods for plugin in plugins):
        rules.append(rule("", ["pods"], ["patch"]))
    return rules


def _plugins(config: SchedulerConfig, registry: Registry) -> Iterable[type[Plugin]]:
    names = (name for profile in config.profiles for point in profile.plugins.values() for name in point)
    return (cast("type[Plugin]", registry[name]) for name in dict.fromkeys(names))


def _add(groups: dict[str, list[str]], group: str, plural: str) -> None:
    plurals = groups.setdefault(group, [])
    if plural not in plurals:
        plurals.append(plural)


def _deployment(name: str, namespace: str, image: str, gates: Gates) -> JsonObject:
    switched = [f"--feature-gates={','.join(f'{gate}=true' for gate in sorted(gates))}"] if gates else []
    labels, port = {"app": name}, {"port": 10259, "scheme": "HTTPS"}
    container = {
        "name": "podium",
        "image": image,
        "args": ["run", f"--config={CONFIG_FOLDER}/{CONFIG_FILE}", *switched],
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}],
        "livenessProbe": {"httpGet": {"path": "/livez", **port}, "initialDelaySeconds": 15, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", **port}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "securityContext": confined(),
    }
    spec = {
        "serviceAccountName": name,
        "priorityClassName": "system-cluster-critical",
        "securityContext": unprivileged(),
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    return {
        **head("apps/v1", "Deployment", name, namespace, labels),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
