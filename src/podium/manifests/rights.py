"""Makes roles of what a process declares that it reads and writes: no rule is written by hand.

rights = Rights()
rights.allow("", "pods", "list", "watch")
rights.allow_named("kube-system", "coordination.k8s.io", "leases", "podium", "get", "update")
rights.objects("podium", "kube-system")     # ServiceAccount, ClusterRole, Roles, and their bindings
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.config.types import LeaderElection
from podium.kube.json_object import JsonObject
from podium.manifests.objects import head

RBAC = "rbac.authorization.k8s.io/v1"
SYSTEM = "kube-system"


class Rights:
    """What a service account may do: everywhere, and in single namespaces."""

    def __init__(self) -> None:
        self._everywhere: dict[tuple[str, str], set[str]] = {}
        self._within: dict[str, dict[tuple[str, str, str], set[str]]] = {}
        """By namespace: group, resource and name (empty: any) of an object."""
        self.borrowed: list[tuple[str, str, str, str]] = []
        """Roles that every cluster has: the suffix of the binding, kind, name, and the namespace of a Role."""

    def allow(self, group: str, resource: str, *verbs: str) -> None:
        """Allow verbs on a resource, in all namespaces."""
        self._everywhere.setdefault((group, resource), set()).update(verbs)

    def allow_watching(self, name: str) -> None:
        """Allow listing and watching a kind that plugins call "plural.group"; one of the core group has no group."""
        plural, _, group = name.partition(".")
        self.allow(group, plural, "list", "watch")

    def allow_named(self, namespace: str, group: str, resource: str, name: str, *verbs: str) -> None:
        """Allow verbs on one object. Its creation cannot be limited to a name: it is allowed in the namespace."""
        rules = self._within.setdefault(namespace, {})
        rules.setdefault((group, resource, name), set()).update(set(verbs) - {"create"})
        if "create" in verbs:
            rules.setdefault((group, resource, ""), set()).add("create")

    def lead(self, election: LeaderElection) -> None:
        """Allow keeping a lease."""
        if election.leader_elect:
            lease = (election.resource_namespace, "coordination.k8s.io", "leases", election.resource_name)
            self.allow_named(*lease, "create", "get", "update")

    def record_events(self) -> None:
        self.allow("events.k8s.io", "events", "create", "patch")

    def serve_metrics(self) -> None:
        """Allow finding out who asks for metrics, and whether they may have them."""
        self.allow("authentication.k8s.io", "tokenreviews", "create")
        self.allow("authorization.k8s.io", "subjectaccessreviews", "create")
        self.borrowed.append(("authentication", "Role", "extension-apiserver-authentication-reader", SYSTEM))

    @property
    def cluster_rules(self) -> list[JsonObject]:
        """One rule for each API group and set of verbs."""
        grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (group, resource), verbs in sorted(self._everywhere.items()):
            grouped.setdefault((group, tuple(sorted(verbs))), []).append(resource)
        return [rule(group, resources, verbs) for (group, verbs), resources in grouped.items()]

    def objects(self, name: str, namespace: str) -> list[JsonObject]:
        """The service account, its roles, and what binds them to it."""
        account = account_of(name, namespace)
        objects = [head("v1", "ServiceAccount", name, namespace)]
        if self._everywhere:
            objects += [
                {**head(RBAC, "ClusterRole", name), "rules": self.cluster_rules},
                binding(account, "ClusterRole", name, name),
            ]
        for place, rules in sorted(self._within.items()):
            given = [
                rule(group, [resource], sorted(verbs), [only] if only else [])
                for (group, resource, only), verbs in sorted(rules.items())
                if verbs
            ]
            objects += [
                {**head(RBAC, "Role", name, place), "rules": given},
                binding(account, "Role", name, name, place),
            ]
        for suffix, kind, role, place in self.borrowed:
            objects.append(binding(account, kind, f"{name}-{suffix}", role, place))
        return objects


def account_of(name: str, namespace: str) -> JsonObject:
    """A service account as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> JsonObject:
    """One rule of a role."""
    found: JsonObject = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**found, "resourceNames": list(names)} if names else found


def binding(account: JsonObject, kind: str, name: str, role: str, namespace: str = "") -> JsonObject:
    """An account gets a Role or ClusterRole (`kind`); with a namespace, there only."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    return {**head(RBAC, f"{kind}Binding", name, namespace), "roleRef": reference, "subjects": [account]}
