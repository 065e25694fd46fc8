"""One random cluster: everything that exists before the first pod is decided, and the pods to decide.

The plan is plain data made from (seed, index) alone. Objects stand in the order in which they have to be created;
what cannot be said in one create request (pods being deleted, claims owned by a pod, nodes that come late) is listed
apart.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tools.parity.dice import (
    NAMESPACE_LABELS,
    NAMESPACES,
    POD_LABELS,
    RUNTIME_CLASSES,
    Dice,
    Obj,
)
from tools.parity.gen_claims import ADMIN_NAMESPACE
from tools.parity.gen_config import make_config, profile_names
from tools.parity.gen_devices import Devices, make_devices
from tools.parity.gen_nodes import make_nodes
from tools.parity.gen_pods import THEMES, PodMaker, PodPlan
from tools.parity.gen_selectors import label_selector
from tools.parity.gen_volumes import make_storage

PODS_PER_CLUSTER = (7, 11)
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


@dataclass
class PendingPlan:
    """One pod to decide and what happens around it."""

    plan: PodPlan
    keep: bool  # stay pending when unschedulable, so that later pods meet it
    start_time: str | None  # what its status says once it is bound
    late_node: Obj | None = None  # a node that joins before this pod
    finish_preemption: bool = False  # the victims of this pod go away while it is pending


@dataclass
class ClusterPlan:
    index: int
    theme: str
    namespace_labels: dict[str, Obj]
    objects: list[Obj]
    bound: list[PodPlan]
    terminating_pods: list[tuple[str, str]]
    terminating_claims: list[Obj]
    reserved: list[PodPlan]  # gated pods that hold a nomination
    config: Obj
    pending: list[PendingPlan] = field(default_factory=list)


def standing_objects() -> list[Obj]:
    """What all clusters share and no run changes: namespaces and runtime classes."""
    objects: list[Obj] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **_labels(name)}}
        for name in NAMESPACES
        if name != "default"
    ]
    overheads = (None, {"cpu": "250m", "memory": "120Mi"}, {"cpu": "33m"})
    for name, overhead in zip(RUNTIME_CLASSES, overheads, strict=True):
        runtime: Obj = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": name,
        }
        if overhead:
            runtime["overhead"] = {"podFixed": overhead}
        if name == "picky":
            runtime["scheduling"] = {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            }
        objects.append(runtime)
    return objects


def _labels(namespace: str) -> Obj:
    return {"labels": {"resource.kubernetes.io/admin-access": "true"}} if namespace == ADMIN_NAMESPACE else {}


def make_cluster(seed: int, index: int, pod_count: int | None = None, theme: str | None = None) -> ClusterPlan:
    """The cluster of a seed with this index; its theme follows from them, unless it is given."""
    dice = Dice(f"{seed}/{index}")
    theme = theme or _theme(seed, index)
    few, many = {2: 3, 3: 3, 4: 2, 5: 2, 7: 1}, {2: 1, 3: 2, 4: 3, 5: 3, 6: 2, 7: 2, 8: 1, 10: 1, 12: 1}
    if theme == "twins":
        node_count = dice.randint(5, 12)
    else:
        node_count = dice.weighted(few if theme in ("volumes", "ports", "nodes", "preemption") else many)
    nodes = make_nodes(dice, node_count, theme)
    late_count = dice.weighted({0: 5, 1: 3, 2: 1}) if node_count > 2 else 0
    early, late = nodes[: node_count - late_count], nodes[node_count - late_count :]
    _without_shared_images(late, early)
    names = [node["metadata"]["name"] for node in nodes]
    storage = make_storage(dice, nodes, theme)
    devices = make_devices(dice, nodes) if theme == "devices" else Devices()
    owners = _owners(dice)
    config = make_config(dice, names, theme)
    maker = PodMaker(dice, theme, names, storage, devices, owners, profile_names(config))

    bound = _bound_pods(dice, maker, [node["metadata"]["name"] for node in early], theme)
    _give_start_times(dice, bound)
    plan = ClusterPlan(
        index=index,
        theme=theme,
        namespace_labels={name: _namespace_labels(dice) for name in NAMESPACES},
        objects=[*early, *storage.objects, *devices.objects, *(each for group in owners.values() for each in group)],
        bound=bound,
        terminating_pods=_terminating(dice, bound),
        terminating_claims=storage.terminating,
        reserved=[],
        config=config,
    )
    plan.objects += _services(dice)
    plan.objects += _budgets(dice, theme, bound)
    if dice.chance(0.3):
        plan.reserved = [_reserved(dice, maker, f"held-{n}", names) for n in range(dice.randint(1, 3))]
    count = pod_count or dice.randint(*PODS_PER_CLUSTER)
    for number in range(count):
        plan.pending.append(
            PendingPlan(
                plan=maker.pending(f"case-{number}"),
                keep=dice.chance(0.5),
                start_time=_time(dice) if dice.chance(0.95) else None,
                finish_preemption=dice.chance(0.6),
            )
        )
    for node in late:
        dice.pick(plan.pending).late_node = node
    return plan


def _without_shared_images(late: list[Obj], early: list[Obj]) -> None:
    """Nodes that join later bring no image that others have.

    kube-scheduler copies the number of nodes with an image into its snapshot of each node, and renews that copy only
    when the node itself changes; what it then scores depends on its past and cannot be seen in the cluster.
    """
    known = {name for node in early for image in node["status"]["images"] for name in image["names"]}
    for node in late:
        images = node["status"]["images"]
        node["status"]["images"] = [image for image in images if not known & set(image["names"])]
        known |= {name for image in images for name in image["names"]}


def _theme(seed: int, index: int) -> str:
    """Themes in a fixed mixture, so that a short run meets them all."""
    row = [theme for theme, times in THEMES.items() for _ in range(times)]
    Dice(f"themes of {seed}").shuffle(row)
    return row[index % len(row)]


def _bound_pods(dice: Dice, maker: PodMaker, node_names: list[str], theme: str) -> list[PodPlan]:
    crowd = {"preemption": (3, 8), "evictions": (3, 5), "resources": (1, 5), "twins": (0, 1)}.get(theme, (0, 4))
    plans: list[PodPlan] = []
    for node in node_names:
        for _ in range(dice.randint(*crowd)):
            plans.append(maker.bound(f"old-{len(plans)}", node))
    if dice.chance(0.15):
        plans.append(maker.bound(f"old-{len(plans)}", "vanished-node"))
    return plans


def _give_start_times(dice: Dice, bound: list[PodPlan]) -> None:
    """Start times that no two pods of one node and priority share: kube-scheduler sorts such pods as they come."""
    taken: set[tuple[str, int, str | None]] = set()
    for plan in bound:
        spec = plan.pod["spec"]
        time = _time(dice) if dice.chance(0.93) else None
        while (key := (spec["nodeName"], spec.get("priority", 0), time)) in taken:
            time = _time(dice)
        taken.add(key)
        if time is not None:
            plan.pod["status"]["startTime"] = time


def later(time: str | None) -> str:
    """One second later, or the beginning of time for a pod that had none."""
    moment = EPOCH if time is None else datetime.strptime(time, _TIME_FORMAT).replace(tzinfo=UTC)
    return (moment + timedelta(seconds=1)).strftime(_TIME_FORMAT)


def _time(dice: Dice) -> str:
    # Few different days and many seconds: equal times on different nodes happen, equal times on one node do not stay.
    seconds = dice.pick((0, 3600, 7200)) if dice.chance(0.5) else dice.randint(1, 10**6)
    return (EPOCH + timedelta(seconds=seconds)).strftime(_TIME_FORMAT)


def _terminating(dice: Dice, bound: list[PodPlan]) -> list[tuple[str, str]]:
    alive = [plan.pod for plan in bound if plan.pod["status"]["phase"] in ("Running", "Pending")]
    return [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in alive if dice.chance(0.06)]


def _reserved(dice: Dice, maker: PodMaker, name: str, node_names: list[str]) -> PodPlan:
    plan = maker.pending(name)
    plan.pod["spec"]["schedulingGates"] = [{"name": "example.test/held"}]
    plan.pod["status"] = {"nominatedNodeName": dice.pick(node_names)}
    plan.owned_claims = []
    return plan


def _namespace_labels(dice: Dice) -> Obj:
    return {key: dice.pick(values) if dice.chance(0.7) else None for key, values in NAMESPACE_LABELS.items()}


def _owners(dice: Dice) -> dict[str, list[Obj]]:
    owners: dict[str, list[Obj]] = {name: [] for name in NAMESPACES}
    for index in range(dice.randint(0, 3)):
        namespace = dice.pick(NAMESPACES[:2])
        labels = {key: dice.pick(POD_LABELS[key]) for key in dice.some(list(POD_LABELS), 1, 2)}
        kind = dice.pick(("ReplicaSet", "StatefulSet", "ReplicationController"))
        owners[namespace].append(_owner(dice, kind, f"owner-{index}", namespace, labels))
    return owners


def _owner(dice: Dice, kind: str, name: str, namespace: str, labels: Obj) -> Obj:
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example.test/web:1"}]},
    }
    selector: Obj = {"matchLabels": labels}
    if kind != "ReplicationController" and dice.chance(0.3):
        key = next(iter(labels))
        selector = {"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key], "other"]}]}
    spec: Obj = {"selector": labels if kind == "ReplicationController" else selector, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, **spec},
    }


def _services(dice: Dice) -> list[Obj]:
    services = []
    for index in range(dice.randint(0, 3)):
        spec: Obj = {"clusterIP": "None", "ports": [{"port": 80}]}
        if dice.chance(0.85):
            spec["selector"] = {key: dice.pick(POD_LABELS[key]) for key in dice.some(list(POD_LABELS), 1, 2)}
        metadata = {"name": f"service-{index}", "namespace": dice.pick(NAMESPACES[:2])}
        services.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    return services


def _budgets(dice: Dice, theme: str, bound: list[PodPlan]) -> list[Obj]:
    budgets = []
    for index in range(dice.randint(1, 4) if theme in ("preemption", "evictions") else dice.randint(0, 3)):
        status: Obj = {
            "disruptionsAllowed": dice.pick((0, 0, 0, 1, 2)),
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
        }
        if bound and dice.chance(0.45):
            names = [plan.pod["metadata"]["name"] for plan in dice.some(bound, 1, 6)]
            status["disruptedPods"] = dict.fromkeys(names, "2024-01-01T00:00:00Z")
        spec: Obj = {"minAvailable": 1}
        if dice.chance(0.5):
            spec["selector"] = {"matchExpressions": [{"key": dice.pick(list(POD_LABELS)), "operator": "Exists"}]}
        elif dice.chance(0.95):
            spec["selector"] = label_selector(dice, POD_LABELS)
        budgets.append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"budget-{index}", "namespace": dice.pick(NAMESPACES[:2])},
                "spec": spec,
                "status": status,
            }
        )
    return budgets
