"""Lists the objects that a new cluster begins with, as kube-apiserver makes them: four namespaces, the two system
priority classes, and the ConfigMap that components read their trusted certificates from (here: none)."""

from typing import Any, Final

_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")

_PRIORITY_CLASSES: Final = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def initial_objects() -> list[dict[str, Any]]:
    """In the order they are to be created; those that exist already stay as they are."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in _NAMESPACES]
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        for name, value, description in _PRIORITY_CLASSES
    ]
    authentication = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {},
    }
    return [*namespaces, *classes, authentication]
