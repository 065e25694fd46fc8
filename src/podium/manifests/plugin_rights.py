"""Finds out what the plugins of a configuration read and write.

Plugins declare kinds (`depends_on`), custom resources (`resources`, `interests()`) and writes (`writes`). What they
measure and where they keep what they learn, they say when they are made: so all are made once, with a source of load
and an experience that only remember what they are used for.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final

from podium.client.informers import custom_kinds, watched_kinds
from podium.cluster import Cluster
from podium.config.feature_gates import Gate
from podium.config.points import Point
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.explain import Unwritten
from podium.framework.clock import SystemClock
from podium.framework.experience import GivenExperience
from podium.framework.handle import Driver, EngineState, Handle
from podium.framework.plugin import Plugin
from podium.framework.plugin_extras import Write
from podium.framework.profile import ProfileRuntime
from podium.load.readings import GivenLoad
from podium.manifests.rights import Rights

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


def writes_of(plugin: type[Plugin]) -> tuple[Write, ...]:
    """What a plugin writes beside the binding; one with PostFilter that declares nothing may evict."""
    if plugin.writes is not None:
        return plugin.writes
    return (Write.EVICTIONS,) if Point.POST_FILTER in plugin.points else ()


def allow_plugins(rights: Rights, config: SchedulerConfig, registry: Registry, *, shadow: bool = False) -> None:
    """Allow all that the plugins of all profiles need; a shadow writes nothing."""
    load, experience = GivenLoad(), GivenExperience()
    runtimes = list(_runtimes(config, registry, load, experience))
    for resource in watched_kinds(runtimes):
        rights.allow(resource.group, resource.plural, "list", "watch")
    for name in custom_kinds(runtimes):
        rights.allow_watching(name)
    if any(getattr(getattr(series, "source", None), "kind", "") == "metrics-server" for series in load.followed):
        rights.allow("metrics.k8s.io", "nodes", "list")
    for place in experience.learners:
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
    config: SchedulerConfig, registry: Registry, load: GivenLoad, experience: GivenExperience
) -> Iterable[ProfileRuntime]:
    for profile in config.profiles:
        handle = Handle(
            Driver(clock=SystemClock(), writer=Unwritten(), rng=random.Random(0), load=load, experience=experience),
            EngineState(cluster=Cluster()),
            rules=config.rules,
        )
        yield ProfileRuntime(profile, registry, handle)
