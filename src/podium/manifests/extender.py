"""Writes the Kubernetes objects that run agents beside a kube-scheduler of their own.

    one pod:  kube-scheduler ──HTTP, loopback──► podium extender, one container and port for each agent
                                                 (5401, 5402, …)

A second scheduler of its own name and lease runs beside the cluster's: pods ask for it with `schedulerName`. The
service account has the rights of kube-scheduler, which the cluster defines, and a role for what the agents watch and
keep, which follows from their plugins. An agent that does not answer is passed over (`ignorable`): placement goes on
without it. Ports listen to the pod's address because probes come from outside; a network policy keeps others away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from podium.client import RESOURCES
from podium.client.watched_outcomes import PODS
from podium.config.registry import Registry
from podium.extender.agents import Agent
from podium.extender.assembly import kinds_to_watch
from podium.framework.plugin import Plugin
from podium.kube.json_object import JsonObject
from podium.manifests.objects import (
    CONFIG_FOLDER,
    IMAGE,
    config_map,
    config_mount,
    container,
    deployment,
    disruption_budget,
    head,
    probes,
    to_yaml,
)
from podium.manifests.rights import SYSTEM, Rights

FIRST_PORT = 5401
CONFIG_FILE = "scheduler.yaml"
AGENTS_FILE = "agents.yaml"
"""kube-scheduler's configuration, and that of the agents, where they have one."""
ALONE, TOGETHER = 10, 1
"""Weights of an agent that is the only one, and of one among several."""


class ExtenderSettings(NamedTuple):
    """What the objects are called, and what the containers are given."""

    name: str = ""
    """Of the scheduler and of all objects; empty: made of the agents' names."""
    namespace: str = "kube-system"
    image: str = IMAGE
    scheduler_image: str = "registry.k8s.io/kube-scheduler:v1.36.4"
    variables: Mapping[str, str] = {}
    """In addition to those above, and before them; for every agent's container."""
    names_only: bool = True
    """Whether kube-scheduler sends only the names of nodes, or nodes as a whole."""
    agents_config: str = ""
    """The text of a configuration with the plugins' arguments; empty: none."""


def name_of(agents: Sequence[Agent], settings: ExtenderSettings) -> str:
    """What the scheduler is called.

    >>> from podium.extender.agents import Agent
    >>> name_of([Agent(name="safe", summary="…"), Agent(name="pigeon", summary="…")], ExtenderSettings())
    'podium-safe-pigeon'
    """
    return settings.name or "-".join(["podium", *(agent.name.lower() for agent in agents)])


def manifest(agents: Sequence[Agent], registry: Registry, settings: ExtenderSettings) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied."""
    name, namespace = name_of(agents, settings), settings.namespace
    files = {CONFIG_FILE: to_yaml([scheduler_config(agents, settings)])}
    if settings.agents_config:
        files[AGENTS_FILE] = settings.agents_config
    containers = [
        _scheduler(settings),
        *(_extender(agent, number, registry, settings) for number, agent in enumerate(agents)),
    ]
    return [
        *process_rights(agents, registry, settings).objects(name, namespace),
        config_map(name, namespace, files),
        deployment(name, namespace, containers, files=files, critical=True),
        disruption_budget(name, namespace),
        _closed_to_others(name, settings),
        _test_pod(name),
    ]


# kube-scheduler


def scheduler_config(agents: Sequence[Agent], settings: ExtenderSettings) -> JsonObject:
    """The KubeSchedulerConfiguration."""
    name = name_of(agents, settings)
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": True, "resourceName": name, "resourceNamespace": settings.namespace},
        "profiles": [{"schedulerName": name}],
        "extenders": [
            entry
            for number, agent in enumerate(agents)
            for entry in _extenders(agent, FIRST_PORT + number, alone=len(agents) == 1, settings=settings)
        ],
    }


def _extenders(agent: Agent, port: int, *, alone: bool, settings: ExtenderSettings) -> list[JsonObject]:
    host = f"http://127.0.0.1:{port}"
    weight = ALONE if alone else TOGETHER
    common = {"httpTimeout": "2s", "nodeCacheCapable": settings.names_only, "ignorable": True}
    if agent.name == "safe" and alone:
        # The risk of overload keeps pods away; among the nodes that are left, balance decides.
        overload = {"filterVerb": "predicates/safe-overload", "prioritizeVerb": "priorities/safe-overload"}
        balance = {"prioritizeVerb": "priorities/safe-balance"}
        prefix = {"urlPrefix": f"{host}/scheduler"}
        return [
            {**prefix, **overload, "weight": TOGETHER, **common},
            {**prefix, **balance, "weight": ALONE, **common},
        ]
    entry: JsonObject = {"urlPrefix": f"{host}/{agent.name}"}
    if agent.predicates:
        entry["filterVerb"] = "filter"
    if agent.priorities:
        entry |= {"prioritizeVerb": "prioritize", "weight": weight}
    return [entry | common]


# Rights


def process_rights(agents: Sequence[Agent], registry: Registry, settings: ExtenderSettings) -> Rights:
    """What the agents watch and keep, and what kube-scheduler needs, which the cluster has roles for."""
    name = name_of(agents, settings)
    plugins = cast("list[type[Plugin]]", [registry[plugin] for agent in agents for plugin in agent.plugins])
    watched = [*kinds_to_watch(plugins), *(RESOURCES[kind] for agent in agents for kind in agent.watches)]
    states = [plugin.learned_state for plugin in plugins if plugin.learned_state is not None]
    config_maps = [settings.variables.get(state.name_variable, state.config_map.name) for state in states]
    found = Rights()
    for resource in (*watched, *([PODS] if config_maps else [])):
        found.allow(resource.group, resource.plural, "list", "watch")
    for plugin in plugins:
        for name_read in plugin.resources:
            found.allow_watching(name_read.partition("/")[0])
    # kube-scheduler's own role allows it to create leases, and to keep that of its own name.
    found.allow_named(settings.namespace, "coordination.k8s.io", "leases", name, "get", "update")
    for config_map_name in config_maps:
        found.allow_named(settings.namespace, "", "configmaps", config_map_name, "create", "get", "update")
    found.borrowed = [
        ("kube-scheduler", "ClusterRole", "system:kube-scheduler", ""),
        ("volume-scheduler", "ClusterRole", "system:volume-scheduler", ""),
        ("authentication", "Role", "extension-apiserver-authentication-reader", SYSTEM),
    ]
    return found


# The pod


def _scheduler(settings: ExtenderSettings) -> JsonObject:
    given = {
        "command": ["kube-scheduler", f"--config={CONFIG_FOLDER}/{CONFIG_FILE}", "-v=2"],
        **probes(10259, "/livez", "/readyz", scheme="HTTPS"),
        "volumeMounts": [config_mount()],
    }
    return container("kube-scheduler", settings.scheduler_image, "kube-scheduler", given)


def _extender(agent: Agent, number: int, registry: Registry, settings: ExtenderSettings) -> JsonObject:
    port = FIRST_PORT + number
    variables = {"HTTP_PORT": str(port), "LOG_LEVEL": "INFO", **agent.variables, **settings.variables}
    for plugin in cast("list[type[Plugin]]", [registry[name] for name in agent.plugins]):
        if plugin.learned_state is not None and plugin.learned_state.namespace_variable:
            variables.setdefault(plugin.learned_state.namespace_variable, settings.namespace)
    given: JsonObject = {
        "args": ["extender", "--agents", agent.name, "--bind-address", "0.0.0.0"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "ports": [{"name": f"extender-{number + 1}", "containerPort": port}],
        **probes(port, "/version", "/readyz"),
    }
    if settings.agents_config:
        given["args"] += ["--config", f"{CONFIG_FOLDER}/{AGENTS_FILE}"]
        given["volumeMounts"] = [config_mount()]
    return container(f"extender-{number + 1}", settings.image, "extender", given)


def _closed_to_others(name: str, settings: ExtenderSettings) -> JsonObject:
    """No other pod may ask the agents: what they learn, they learn from their scheduler."""
    spec = {"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Ingress"], "ingress": []}
    return {**head("networking.k8s.io/v1", "NetworkPolicy", name, settings.namespace), "spec": spec}


def _test_pod(name: str) -> JsonObject:
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": "200m", "memory": "200Mi"}},
    }
    return {
        **head("v1", "Pod", f"{name}-test", "default"),
        "spec": {"schedulerName": name, "containers": [container]},
    }
