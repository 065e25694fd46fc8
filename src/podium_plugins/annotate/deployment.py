"""Lists the Kubernetes objects that run `podium annotate` in a cluster, with the rights it needs.

There is one replica: a second one would only write the same annotations again.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.kube.json_object import JsonObject
from podium.manifests.objects import container, deployment
from podium.manifests.rights import Rights


def name_of(kind: str) -> str:
    """What the objects are called."""
    return f"podium-annotate-{kind}"


def process_rights(kind: str) -> Rights:
    """Nodes are read and annotated; allocation also counts what pods ask for."""
    found = Rights()
    found.allow("", "nodes", "list", "patch", "watch")
    if kind == "allocation":
        found.allow("", "pods", "list", "watch")
    return found


def manifest(kind: str, options: Sequence[str], namespace: str, image: str) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied; `options` are those of `podium annotate KIND`."""
    name = name_of(kind)
    process = container("annotate", image, "annotate", {"args": ["annotate", kind, *options]})
    return [
        *process_rights(kind).objects(name, namespace),
        deployment(name, namespace, [process], replicas=1),
    ]
