"""Lists the Kubernetes objects that run `podium annotate` in a cluster, with the rights it needs."""

from __future__ import annotations

from collections.abc import Sequence

from podium.kube.json_object import JsonObject
from podium.serving.manifests import RBAC, account_of, binding, confined, head, rule, unprivileged

RULES = {
    "usage": [rule("", ["nodes"], ["list", "watch", "patch"])],
    "allocation": [rule("", ["nodes"], ["list", "watch", "patch"]), rule("", ["pods"], ["list", "watch"])],
}


def manifest(kind: str, options: Sequence[str], namespace: str, image: str) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied; `options` are those of `podium annotate KIND`."""
    name = f"podium-annotate-{kind}"
    labels = {"app": name}
    container = {
        "name": "annotate",
        "image": image,
        "args": ["annotate", kind, *options],
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
        "securityContext": confined(),
    }
    pod = {"serviceAccountName": name, "securityContext": unprivileged(), "containers": [container]}
    return [
        head("v1", "ServiceAccount", name, namespace),
        {**head(RBAC, "ClusterRole", name), "rules": RULES[kind]},
        binding(account_of(name, namespace), "ClusterRole", name, name),
        {
            **head("apps/v1", "Deployment", name, namespace, labels),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    ]
