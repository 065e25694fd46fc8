"""Random KubeSchedulerConfigurations: several profiles, each bent in a few places.

The first profile is often the plain default, because that is what most clusters run. One worker and no sampling make
the order of the nodes, and with it every tie, reproducible.
"""

from tools.parity.dice import CARD, GPU, HOSTNAME, NIC, RACK, ZONE, Dice, Obj
from tools.parity.gen_selectors import node_term

API_VERSION = "kubescheduler.config.k8s.io/v1"

SCORERS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
FILTERS = (
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
)
# Whole plugins a profile can do without and still bind pods.
DISPENSABLE = (*FILTERS, "DynamicResources", "DynamicResources", "DefaultPreemption", "ImageLocality", "VolumeZone")


def make_config(dice: Dice, node_names: list[str], theme: str) -> Obj:
    """A configuration without clientConnection, which the one who starts the scheduler adds."""
    profiles = []
    for index in range(dice.randint(2, 3)):
        profile: Obj = {"schedulerName": f"profile-{index}"}
        if index > 0 or dice.chance(0.5):
            _bend(dice, profile, node_names, theme)
        profiles.append(profile)
    return {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 1,
        "percentageOfNodesToScore": 100,
        "leaderElection": {"leaderElect": False},
        "profiles": profiles,
    }


def profile_names(config: Obj) -> tuple[str, ...]:
    return tuple(profile["schedulerName"] for profile in config["profiles"])


def _bend(dice: Dice, profile: Obj, node_names: list[str], theme: str) -> None:
    plugins = _plugins(dice, theme)
    if plugins:
        profile["plugins"] = plugins
    arguments = {
        "NodeResourcesFit": _fit_args(dice),
        "NodeResourcesBalancedAllocation": _balanced_args(dice),
        "NodeAffinity": _node_affinity_args(dice, node_names),
        "PodTopologySpread": _spread_args(dice),
        "InterPodAffinity": _inter_pod_args(dice),
    }
    configured = [{"name": name, "args": args} for name, args in arguments.items() if args]
    if configured:
        profile["pluginConfig"] = configured


def _plugins(dice: Dice, theme: str) -> Obj:
    plugins: Obj = {}
    if theme == "volumes" and dice.chance(0.4):
        _disable(plugins, "multiPoint", [dice.pick(("VolumeZone", "VolumeZone", "VolumeBinding"))])
    if dice.chance(0.35):
        _disable(plugins, "multiPoint", dice.some(DISPENSABLE, 1, 2))
    if dice.chance(0.25):
        _disable(plugins, "score", dice.some(SCORERS, 1, 3))
    if dice.chance(0.2):
        _disable(plugins, "filter", dice.some(FILTERS, 1, 2))
    if dice.chance(0.08):
        _disable(plugins, "postFilter", [dice.pick(("DefaultPreemption", "DynamicResources", "*"))])
    if dice.chance(0.4):
        weights = [{"name": name, "weight": dice.pick((1, 2, 5, 10, 33))} for name in dice.some(SCORERS, 1, 3)]
        point = dice.pick(("multiPoint", "score"))
        gone = {each["name"] for each in plugins.get("multiPoint", {}).get("disabled", [])}
        plugins.setdefault(point, {})["enabled"] = [each for each in weights if each["name"] not in gone]
    if dice.chance(0.15):  # named first at their point, they also run first
        points = (plugins.get("filter", {}), plugins.get("multiPoint", {}))
        gone = {each["name"] for point in points for each in point.get("disabled", [])}
        first = [{"name": name} for name in dice.some(FILTERS, 1, 4) if name not in gone]
        plugins.setdefault("filter", {})["enabled"] = first
    if dice.chance(0.1):  # disabled and enabled again, a plugin moves to the end
        name = dice.pick(FILTERS)
        _disable(plugins, "multiPoint", [name])
        multi_point = plugins["multiPoint"]
        kept = [each for each in multi_point.get("enabled", []) if each["name"] != name]
        multi_point["enabled"] = [*kept, {"name": name}]
    if dice.chance(0.04):
        plugins["score"] = {"disabled": [{"name": "*"}]}
    return plugins


def _disable(plugins: Obj, point: str, names: list[str]) -> None:
    disabled = plugins.setdefault(point, {}).setdefault("disabled", [])
    for name in names:
        if {"name": name} not in disabled:
            disabled.append({"name": name})


def _fit_args(dice: Dice) -> Obj:
    args: Obj = {}
    if dice.chance(0.15):
        args["ignoredResources"] = [dice.pick((GPU, "unknown.test/thing"))]
    if dice.chance(0.1):
        args["ignoredResourceGroups"] = [dice.pick(("vendor.test", "unknown.test"))]
    if dice.chance(0.6):
        kind = dice.pick(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
        strategy: Obj = {"type": kind, "resources": _weighted_resources(dice)}
        if kind == "RequestedToCapacityRatio":
            points = sorted(dice.sample(range(0, 101, 5), dice.randint(1, 4)))
            shape = [{"utilization": each, "score": dice.randint(0, 10)} for each in points]
            strategy["requestedToCapacityRatio"] = {"shape": shape}
        args["scoringStrategy"] = strategy
    return args


def _weighted_resources(dice: Dice) -> list[Obj]:
    names = dice.some(("cpu", "memory", "ephemeral-storage", GPU, NIC, CARD), 1, 4)
    return [{"name": name, "weight": dice.pick((1, 2, 3, 7, 100))} for name in names]


def _balanced_args(dice: Dice) -> Obj:
    if not dice.chance(0.35):
        return {}
    names = dice.some(("cpu", "memory", "ephemeral-storage", GPU, NIC), 1, 4)
    return {"resources": [{"name": name, "weight": 1} for name in names]}


def _node_affinity_args(dice: Dice, node_names: list[str]) -> Obj:
    if not dice.chance(0.25):
        return {}
    added: Obj = {}
    if dice.chance(0.35):
        terms = [node_term(dice, node_names, 0.05) for _ in range(dice.randint(1, 2))]
        added["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [term for term in terms if term] or [{"matchFields": _named(dice, node_names)}]
        }
    if dice.chance(0.7) or not added:
        added["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.pick((1, 20, 100)), "preference": node_term(dice, node_names, pinned=0.05)}
            for _ in range(dice.randint(1, 2))
        ]
    return {"addedAffinity": added}


def _named(dice: Dice, node_names: list[str]) -> list[Obj]:
    return [{"key": "metadata.name", "operator": "NotIn", "values": [dice.pick(node_names)]}]


def _spread_args(dice: Dice) -> Obj:
    if not dice.chance(0.35):
        return {}
    constraints = {}
    for _ in range(dice.randint(0, 3)):
        key, action = dice.pick((ZONE, HOSTNAME, RACK)), dice.pick(("ScheduleAnyway", "DoNotSchedule"))
        constraints[key, action] = {"maxSkew": dice.randint(1, 3), "topologyKey": key, "whenUnsatisfiable": action}
    return {"defaultingType": "List", "defaultConstraints": list(constraints.values())}


def _inter_pod_args(dice: Dice) -> Obj:
    args: Obj = {}
    if dice.chance(0.3):
        args["hardPodAffinityWeight"] = dice.pick((0, 5, 50, 100))
    if dice.chance(0.2):
        args["ignorePreferredTermsOfExistingPods"] = True
    return args
