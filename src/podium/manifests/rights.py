"""Makes roles of what a process declares that it reads and writes: no rule is written by hand.

rights = Rights()
rights.allow("", "pods", "list", "watch")
rights.allow_named("kube-system", "coordination.k8s.io", "leases", "podium", "get", "update")
rights.objects("podium", "kube-system")     # ServiceAccount, ClusterRole, Roles, and their bindings

Also finds out what the plugins of a configuration read and write.

Plugins declare kinds (`depends_on`), custom resources (`resources`, `interests()`) and writes (`writes`). What they
measure and where they keep what they learn, they say when they are made: so all are made once, with a source of load
and a source of pod outcomes that only remember what they are used for.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Final

from podium.client.informers import custom_kinds, watched_kinds
from podium.cluster import Cluster
from podium.config.feature_gates import Gate
from podium.config.points import Point
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.config.types import LeaderElection
from podium.engine.explain import Unwritten
from podium.framework.clock import SystemClock
from podium.framework.handle import Driver, EngineState, Handle
from podium.framework.plugin import Plugin
from podium.framework.plugin_extras import Write
from podium.framework.pod_outcomes import GivenOutcomes
from podium.framework.profile import ProfileRuntime
from podium.kube.json_object import JsonObject
from podium.load.readings import GivenLoad
from podium.manifests.objects import head

RBAC = "rbac.authorization.k8s.io/v1"
SYSTEM = "kube-system"
WRITES: Final[dict[Write, tuple[tuple[str, str, str], ...]]] = {
    Write.EVICTIONS: (("", "pods", "delete"), ("", "pods/status", "patch")),
    Write.ANNOTATIONS: (("", "pods", "patch"),),
    Write.VOLUMES: (("", "persistentvolumes", "patch"), ("", "persistentvolumeclaims", "patch")),
    Write.CLAIMS: (
        ("resource.k8s.io", "resourceclaims", "create"),  # for extended resources that are met by devices
        ("resource.k8s.io", "resourceclaims", "delete"),
        ("resource.k8s.io", "resourceclaims", "get"),  # after a conflict
        ("resource.k8s.io", "resourceclaims", "patch"),
        ("resource.k8s.io", "resourceclaims/binding", "patch"),  # the API server asks for it when the status is patched
        ("resource.k8s.io", "resourceclaims/status", "patch"),
    ),
}
"""The verbs behind each write that a plugin may declare."""


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


def writes_of(plugin: type[Plugin]) -> tuple[Write, ...]:
    """What a plugin writes beside the binding; one with PostFilter that declares nothing may evict."""
    if plugin.writes is not None:
        return plugin.writes
    return (Write.EVICTIONS,) if Point.POST_FILTER in plugin.points else ()


def allow_plugins(rights: Rights, config: SchedulerConfig, registry: Registry, *, shadow: bool = False) -> None:
    """Allow all that the plugins of all profiles need; a shadow writes nothing."""
    load, pod_outcomes = GivenLoad(), GivenOutcomes()
    runtimes = list(_runtimes(config, registry, load, pod_outcomes))
    for resource in watched_kinds(runtimes):
        rights.allow(resource.group, resource.plural, "list", "watch")
    for name in custom_kinds(runtimes):
        rights.allow_watching(name)
    if any(getattr(getattr(series, "source", None), "kind", "") == "metrics-server" for series in load.followed):
        rights.allow("metrics.k8s.io", "nodes", "list")
    for place in pod_outcomes.learners:
        verbs = ("get",) if shadow else ("create", "get", "update")
        rights.allow_named(place.namespace, "", "configmaps", place.name, *verbs)
    if shadow:
        return
    for runtime in runtimes:
        for plugin in runtime.plugins.values():
            for write in writes_of(type(plugin)):
                for group, resource_name, verb in WRITES[write]:
                    rights.allow(group, resource_name, verb)
    if Gate.GENERIC_WORKLOAD in config.gates:
        rights.allow("scheduling.k8s.io", "podgroups/status", "patch")


def _runtimes(
    config: SchedulerConfig, registry: Registry, load: GivenLoad, pod_outcomes: GivenOutcomes
) -> Iterable[ProfileRuntime]:
    for profile in config.profiles:
        handle = Handle(
            Driver(clock=SystemClock(), writer=Unwritten(), rng=random.Random(0), load=load, pod_outcomes=pod_outcomes),
            EngineState(cluster=Cluster()),
            rules=config.rules,
        )
        yield ProfileRuntime(profile, registry, handle)
