"""Random nodes: small, unequal, partly broken.

A node here misses labels, has taints no pod tolerates, reports no memory, or is too small for what already runs on it;
clusters of tidy equal nodes would hide most of what a scheduler decides.
"""

from tools.parity.dice import (
    BETA_REGION,
    BETA_ZONE,
    GIB,
    GPU,
    HOSTNAME,
    HUGEPAGES,
    IMAGES,
    MIB,
    NIC,
    NODE_LABELS,
    RACK,
    REGION,
    TAINTS,
    ZONE,
    ZONES,
    Dice,
    Obj,
)

DECLARED_FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
IMAGE_SIZES = {name: size * MIB for name, size in zip(IMAGES, (40, 300, 900, 2500, 1200), strict=True)}


TIGHT_THEMES = ("resources", "preemption")


def make_nodes(dice: Dice, count: int, theme: str) -> list[Obj]:
    """The nodes of one cluster, in creation order."""
    names = [f"{dice.pick(('amber', 'birch', 'cedar', 'delta', 'ember'))}-{index:02d}" for index in range(count)]
    taint_share = dice.pick((0.5, 0.8)) if theme == "taints" else dice.pick((0.0, 0.0, 0.1, 0.3))
    beta_labels = dice.chance(0.1)
    zone_count = dice.randint(1, len(ZONES))
    if theme in ("twins", "evictions"):
        models = [_make_node(dice, names[0], theme, 0.0, beta_labels, zone_count) for _ in range(dice.randint(1, 2))]
        return [_twin(dice, dice.pick(models), name, zone_count) for name in names]
    return [_make_node(dice, name, theme, taint_share, beta_labels, zone_count) for name in names]


def _twin(dice: Dice, node: Obj, name: str, zone_count: int) -> Obj:
    """The same node under another name, often in another zone."""
    labels = {**node["metadata"]["labels"], HOSTNAME: name}
    if dice.chance(0.8):
        labels[ZONE] = dice.pick(ZONES[:zone_count])
    return {**node, "metadata": {"name": name, "labels": labels}}


def _make_node(dice: Dice, name: str, theme: str, taint_share: float, beta_labels: bool, zone_count: int) -> Obj:
    spec: Obj = {}
    taints = _taints(dice) if dice.chance(taint_share) else []
    if dice.chance(0.3) and not any(each["key"] == "soft" for each in taints):
        taints.append({"key": "soft", "value": "yes", "effect": "PreferNoSchedule"})
    if taints:
        spec["taints"] = taints
    if dice.chance(0.2 if theme == "taints" else 0.05):
        spec["unschedulable"] = True
    allocatable = _allocatable(dice, theme)
    status: Obj = {
        "capacity": dict(allocatable),
        "allocatable": allocatable,
        "images": _images(dice),
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    declared = sorted(dice.some(DECLARED_FEATURES, 0, 2))
    if declared and dice.chance(0.6):
        status["declaredFeatures"] = declared
    labels = _labels(dice, name, beta_labels, zone_count)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def _labels(dice: Dice, name: str, beta_labels: bool, zone_count: int) -> Obj:
    labels: Obj = {}
    if dice.chance(0.93):
        labels[HOSTNAME] = name if dice.chance(0.95) else "twin"
    if dice.chance(0.9):
        zone = dice.pick(ZONES[:zone_count])
        labels[BETA_ZONE if beta_labels and dice.chance(0.5) else ZONE] = zone
        if dice.chance(0.6):
            labels[BETA_REGION if beta_labels and dice.chance(0.5) else REGION] = dice.pick(("r1", "r2"))
    if dice.chance(0.6):
        labels[RACK] = dice.pick(("k1", "k2", "k3", "k4"))
    for key, values in NODE_LABELS.items():
        if dice.chance(0.7):
            labels[key] = dice.pick(values)
    return labels


def _taints(dice: Dice) -> list[Obj]:
    effects = {"NoSchedule": 3, "PreferNoSchedule": 4, "NoExecute": 1}
    taints: dict[tuple[str, str], Obj] = {}
    for key, value in dice.some(TAINTS, 1, 3):
        effect = dice.weighted(effects)
        taint = {"key": key, "effect": effect}
        if value:
            taint["value"] = value
        taints[key, effect] = taint  # a node may not carry the same key and effect twice
    return list(taints.values())


def _allocatable(dice: Dice, theme: str) -> Obj:
    preemption = theme in ("preemption", "evictions")
    allocatable: Obj = {
        "cpu": f"{dice.pick((1500, 2000, 2500, 3000) if preemption else (1500, 2000, 3000, 3920, 4000, 8000))}m",
        "memory": str(dice.pick((4, 8, 16)) * GIB if preemption else dice.pick((2, 4, 7, 16)) * GIB + 12345),
        "pods": str(dice.pick((4, 6, 8, 10, 14, 110) if theme in TIGHT_THEMES else (6, 9, 14, 30, 110))),
    }
    if dice.chance(0.7):
        allocatable["ephemeral-storage"] = str(dice.pick((GIB, 10 * GIB, 100 * GIB)))
    if dice.chance(0.8 if theme == "extended" else 0.3):
        allocatable[GPU] = str(dice.pick((0, 1, 2, 4)))
    if dice.chance(0.5 if theme == "extended" else 0.15):
        allocatable[NIC] = str(dice.pick((1, 3, 8)))
    if dice.chance(0.2):
        allocatable[HUGEPAGES] = str(dice.pick((0, 64 * MIB, 512 * MIB)))
    for name in ("cpu", "memory", "pods"):
        roll = dice.random()
        if roll < 0.02:
            del allocatable[name]
        elif roll < 0.04:
            allocatable[name] = "0"
    return allocatable


def _images(dice: Dice) -> list[Obj]:
    images = []
    for name in dice.some(IMAGES, 0, 4):
        tagged = name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"
        # The same image may report another size on another node: the first node seen decides for all.
        size = IMAGE_SIZES[name] if dice.chance(0.8) else IMAGE_SIZES[name] // 2
        names = [tagged]
        if dice.chance(0.3):
            names.append(f"{name.split(':')[0]}@sha256:{'ab' * 32}")
        images.append({"names": names, "sizeBytes": size})
    return images
