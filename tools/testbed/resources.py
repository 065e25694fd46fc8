"""Which path of the API a kind is served under, read from the server itself.

The server's aggregated discovery lists every kind it serves, custom ones included, in two requests. A kind is named
`Pod` or `pods`, or with its version in front (`policy/v1/PodDisruptionBudget`, `v1/Event`) where the bare name is
served by several groups; a bare name means the first group that has it, and the core group comes first.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import quote

DISCOVERY_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Resource(NamedTuple):
    api_version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str]

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection, of one object, or of a part of it such as `status`."""
        parts = ["/api" if "/" not in self.api_version else "/apis", self.api_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


def index_resources(discovery_lists: Iterable[dict[str, Any]]) -> dict[str, Resource]:
    """Every name a kind may be called by, from the bodies of `/api` and `/apis` (in this order)."""
    index: dict[str, Resource] = {}
    for resource in (found for body in discovery_lists for found in _resources_of(body)):
        for name in (resource.kind, resource.plural):
            index.setdefault(f"{resource.api_version}/{name}", resource)
            index.setdefault(name, resource)
    return index


def _resources_of(body: dict[str, Any]) -> Iterable[Resource]:
    for group in body.get("items", []):
        group_name = group["metadata"].get("name", "")
        for version in group.get("versions", []):
            api_version = f"{group_name}/{version['version']}" if group_name else version["version"]
            for entry in version.get("resources", []):
                yield Resource(
                    api_version=api_version,
                    kind=entry["responseKind"]["kind"],
                    plural=entry["resource"],
                    namespaced=entry["scope"] == "Namespaced",
                    verbs=frozenset(entry["verbs"]),
                )
