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
from typing import Any, NamedTuple, cast

from podium.client import RESOURCES, ApiResource
from podium.client.experience import PODS
from podium.config.registry import Registry
from podium.extender.agents import Agent
from podium.extender.assembly import kinds_to_watch
from podium.framework.plugin import Plugin
from podium.kube.json_object import JsonObject
from podium.plugins.online import args as online
from podium.plugins.reward import settings as reward
from podium.serving.manifests import IMAGE, RBAC, account_of, binding, confined, head, rule, to_yaml, unprivileged

FIRST_PORT = 5401
CONFIG_FOLDER = "/etc/podium"
CONFIG_FILE = "scheduler.yaml"
ALONE, TOGETHER = 10, 1
"""Weights of an agent that is the only one, and of one among several."""

LEARNING = {"RewardBias": reward.CONFIG_MAP, "OnlineScore": online.CONFIG_MAP}
"""Plugins that keep what they learn, and the ConfigMaps in which they do."""
LEARNING_VARIABLES = {"RewardBias": reward.VARIABLES["config_map"]}

VARIABLES: Mapping[str, Mapping[str, str]] = {
    "safe": {"SAFEUTILIZATION": "90", "SAFEPERCENTILE": "30", "SAFEFORECASTWEIGHT": "20"},
    "congestion": {"CONGESTION_FACTOR_MAX": "10"},
    "pigeon": {"POLICY_OBJECTIVE": "A_BINPACK", "NUM_RESOURCES": "2"},
    "reward": {},
    "load": {"PROMETHEUS_ADDRESS": "http://prometheus.monitoring:9090"},
    "online": {"PROMETHEUS_ADDRESS": "http://prometheus.monitoring:9090"},
    "template": {"TEMPLATE_POINTS": "1"},
}
"""What each agent's container is set up with, to be changed there."""


class Settings(NamedTuple):
    name: str = ""
    """Of the scheduler and of all objects; empty: made of the agents' names."""
    namespace: str = "kube-system"
    image: str = IMAGE
    scheduler_image: str = "registry.k8s.io/kube-scheduler:v1.36.4"
    variables: Mapping[str, str] = {}
    """In addition to those above, and before them; for every agent's container."""
    names_only: bool = True
    """Whether kube-scheduler sends only the names of nodes, or nodes as a whole."""


def name_of(agents: Sequence[Agent], settings: Settings) -> str:
    """What the scheduler is called.

    >>> from podium.extender.agents import AGENTS
    >>> name_of([AGENTS["safe"], AGENTS["pigeon"]], Settings())
    'podium-safe-pigeon'
    """
    return settings.name or "-".join(["podium", *(agent.name.lower() for agent in agents)])


def manifest(agents: Sequence[Agent], registry: Registry, settings: Settings) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied."""
    return [
        *rights(agents, registry, settings),
        _scheduler_config_map(agents, settings),
        _deployment(agents, settings),
        _closed_to_others(name_of(agents, settings), settings),
        _test_pod(name_of(agents, settings)),
    ]


# kube-scheduler


def scheduler_config(agents: Sequence[Agent], settings: Settings) -> JsonObject:
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


def _extenders(agent: Agent, port: int, *, alone: bool, settings: Settings) -> list[JsonObject]:
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


def _scheduler_config_map(agents: Sequence[Agent], settings: Settings) -> JsonObject:
    name = name_of(agents, settings)
    text = to_yaml([scheduler_config(agents, settings)])
    return {**head("v1", "ConfigMap", name, settings.namespace), "data": {CONFIG_FILE: text}}


# Rights


def rights(agents: Sequence[Agent], registry: Registry, settings: Settings) -> list[JsonObject]:
    """The service account, what the agents need, and what kube-scheduler needs."""
    name, namespace = name_of(agents, settings), settings.namespace
    account = account_of(name, namespace)
    reader = "extension-apiserver-authentication-reader"
    return [
        head("v1", "ServiceAccount", name, namespace),
        *agent_roles(agents, registry, settings),
        binding(account, "ClusterRole", name, name),
        binding(account, "ClusterRole", f"{name}-kube-scheduler", "system:kube-scheduler"),
        binding(account, "ClusterRole", f"{name}-volume-scheduler", "system:volume-scheduler"),
        binding(account, "Role", name, name, namespace),
        binding(account, "Role", f"{name}-authentication", reader, "kube-system"),
    ]


def agent_roles(agents: Sequence[Agent], registry: Registry, settings: Settings) -> list[JsonObject]:
    """What the agents watch, and what they and kube-scheduler keep; the lease may be created by its own role."""
    name = name_of(agents, settings)
    plugins = cast("list[type[Plugin]]", [registry[plugin] for agent in agents for plugin in agent.plugins])
    more = [RESOURCES[kind] for agent in agents for kind in agent.watches]
    watched: dict[str, ApiResource[Any]] = {each.path: each for each in (*kinds_to_watch(plugins), *more)}
    config_maps = [_config_map(plugin.name, settings) for plugin in plugins if plugin.name in LEARNING]
    if config_maps:
        watched[PODS.path] = PODS
    groups: dict[str, list[str]] = {}
    for resource in watched.values():
        groups.setdefault(resource.group, []).append(resource.plural)
    reading = [rule(group, kinds, ["list", "watch"]) for group, kinds in groups.items()]
    keeping = [rule("coordination.k8s.io", ["leases"], ["get", "update"], [name])]
    if config_maps:
        keeping += [rule("", ["configmaps"], ["create"]), rule("", ["configmaps"], ["get", "update"], config_maps)]
    return [
        {**head(RBAC, "ClusterRole", name), "rules": reading},
        {**head(RBAC, "Role", name, settings.namespace), "rules": keeping},
    ]


def _config_map(plugin: str, settings: Settings) -> str:
    """Where a plugin keeps what it learns; OnlineScore has no variable for it."""
    return settings.variables.get(LEARNING_VARIABLES.get(plugin, ""), LEARNING[plugin])


# The pod


def _deployment(agents: Sequence[Agent], settings: Settings) -> JsonObject:
    name = name_of(agents, settings)
    labels = {"app": name}
    containers = [_scheduler(settings), *(_extender(agent, number, settings) for number, agent in enumerate(agents))]
    spec = {
        "serviceAccountName": name,
        "priorityClassName": "system-cluster-critical",
        "securityContext": unprivileged(),
        "containers": containers,
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    return {
        **head("apps/v1", "Deployment", name, settings.namespace, labels),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _scheduler(settings: Settings) -> JsonObject:
    port = {"port": 10259, "scheme": "HTTPS"}
    return {
        "name": "kube-scheduler",
        "image": settings.scheduler_image,
        "command": ["kube-scheduler", f"--config={CONFIG_FOLDER}/{CONFIG_FILE}", "-v=2"],
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}],
        "livenessProbe": {"httpGet": {"path": "/livez", **port}, "initialDelaySeconds": 15, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", **port}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": confined(),
    }


def _extender(agent: Agent, number: int, settings: Settings) -> JsonObject:
    port = FIRST_PORT + number
    given = {"HTTP_PORT": str(port), "LOG_LEVEL": "INFO", **VARIABLES.get(agent.name, {}), **settings.variables}
    if agent.name == "reward":
        given.setdefault(reward.VARIABLES["namespace"], settings.namespace)
    return {
        "name": f"extender-{number + 1}",
        "image": settings.image,
        "args": ["extender", "--agents", agent.name, "--bind-address", "0.0.0.0"],
        "env": [{"name": name, "value": value} for name, value in given.items()],
        "ports": [{"name": f"extender-{number + 1}", "containerPort": port}],
        "livenessProbe": {"httpGet": {"path": "/version", "port": port}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": port}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": confined(),
    }


def _closed_to_others(name: str, settings: Settings) -> JsonObject:
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
