"""Lists the Kubernetes objects that run `podium controller` in a cluster, with the least rights it can do with.

The ClusterRole follows from what the enabled controllers declare: a controller that is not enabled adds nothing to it.
Beside it stand events, the lease (in a Role of its own) and what serving /metrics takes: reviews of who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from podium.controllers.assembly import NAME, PORT
from podium.controllers.controller import Controller
from podium.kube.json_object import JsonObject
from podium.serving.manifests import RBAC, account_of, binding, confined, head, rule, unprivileged

REPLICAS: Final = 2
"""One that leads, and one that takes over."""


def rules(controllers: Iterable[Controller]) -> list[JsonObject]:
    """What the controllers read and write, one rule for each API group and set of verbs."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for controller in controllers:
        for resource in (controller.resource, *(each.resource for each in controller.related)):
            verbs.setdefault((resource.group, resource.plural), set()).update(("list", "watch"))
        for name in controller.written:
            verbs.setdefault((controller.resource.group, name), set()).add("patch")
        if controller.fetched is not None:
            fetched = controller.fetched.resource
            verbs.setdefault((fetched.group, fetched.plural), set()).add("get")
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, name), allowed in sorted(verbs.items()):
        grouped.setdefault((group, tuple(sorted(allowed))), []).append(name)
    return [rule(group, names, allowed) for (group, allowed), names in grouped.items()]


def manifest(controllers: Sequence[Controller], namespace: str, image: str) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied."""
    account = account_of(NAME, namespace)
    lease = [
        rule("coordination.k8s.io", ["leases"], ["create"]),
        rule("coordination.k8s.io", ["leases"], ["get", "update"], [NAME]),
    ]
    serving = [
        rule("events.k8s.io", ["events"], ["create", "patch"]),
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ]
    return [
        head("v1", "ServiceAccount", NAME, namespace),
        {**head(RBAC, "ClusterRole", NAME), "rules": [*rules(controllers), *serving]},
        binding(account, "ClusterRole", NAME, NAME),
        {**head(RBAC, "Role", NAME, namespace), "rules": lease},
        binding(account, "Role", NAME, NAME, namespace),
        binding(account, "Role", f"{NAME}-authentication", "extension-apiserver-authentication-reader", "kube-system"),
        _deployment([each.name for each in controllers], namespace, image),
    ]


def _deployment(names: Sequence[str], namespace: str, image: str) -> JsonObject:
    labels = {"app": NAME}
    port = {"port": PORT, "scheme": "HTTPS"}
    options = ["--controllers", ",".join(names), "--leader-elect-resource-namespace", namespace]
    container = {
        "name": "controller",
        "image": image,
        "args": ["controller", *options, "--log-format", "json"],
        "ports": [{"name": "https", "containerPort": PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", **port}, "initialDelaySeconds": 15, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", **port}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
        "securityContext": confined(),
    }
    pod = {"serviceAccountName": NAME, "securityContext": unprivileged(), "containers": [container]}
    return {
        **head("apps/v1", "Deployment", NAME, namespace, labels),
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
