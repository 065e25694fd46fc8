"""Resolves a URL path to the kind, namespace, name and subresource that it names.

/api/v1/nodes                                the collection of a kind
/apis/apps/v1/namespaces/NS/deployments      … in one namespace
…/deployments/NAME                           one object
…/deployments/NAME/scale                     a part of it
"""

from typing import Final, NamedTuple
from urllib.parse import unquote

from podium_cluster.apiserver.errors import StatusError, bad_request, no_such_resource, not_found
from podium_cluster.apiserver.kind import Kind, Kinds
from podium_cluster.apiserver.kinds import POD

NOWHERE: Final = StatusError(404, "NotFound", "404 page not found")
"""A path in a group that is not served: the answer to it is not an object of the API."""


CONTAINER_PARTS: Final = {
    "log": "it has no logs; kubectl describe shows its events",
    "exec": "no command can run in it",
    "attach": "there is nothing to attach to",
    "portforward": "it has no port to forward to",
    "proxy": "it has no port to connect to",
    "ephemeralcontainers": "none can be added",
}
"""Parts of a pod that a node with containers answers for, and what to say here instead."""


class Target(NamedTuple):
    """What a path names: `name` is None for a collection, `namespace` "" for all of them."""

    kind: Kind
    namespace: str
    name: str | None
    subresource: str


def resolve(kinds: Kinds, path: str) -> Target:
    """What the path under /api or /apis names; StatusError 404 where there is no such thing."""
    steps = path.strip("/").split("/")
    if steps[0] == "api":
        group, version, rest = "", steps[1] if len(steps) > 1 else "", steps[2:]
    else:
        group, version, rest = (*steps[1:3], "", "")[0], (*steps[1:3], "", "")[1], steps[3:]
    if "%" in path:
        rest = [unquote(step) for step in rest]
    namespace = ""
    in_namespace = len(rest) >= 3 and rest[0] == "namespaces" and not _is_namespace_part(rest)
    if in_namespace:
        namespace, rest = rest[1], rest[2:]
    if not rest or not rest[0] or len(rest) > 3:
        raise no_such_resource()
    kind = kinds.by_path(group, version, rest[0])
    if kind is None and group and not any(each.group == group for each in kinds):
        raise NOWHERE
    name = rest[1] if len(rest) > 1 else None
    if kind is None or (in_namespace and not kind.namespaced):
        raise no_such_resource()
    if kind.namespaced and name is not None and not namespace:
        raise no_such_resource()
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and kind.part(subresource) is None and not (kind is POD and subresource in CONTAINER_PARTS):
        if kind.custom and subresource in ("status", "scale"):
            raise not_found(kind, rest[1])
        raise no_such_resource()
    return Target(kind, namespace, name, subresource)


def _is_namespace_part(rest: list[str]) -> bool:
    """`namespaces/NS/status` is a part of the namespace, not a kind inside it."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")
