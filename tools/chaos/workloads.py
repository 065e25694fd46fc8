"""Draws nodes, volumes and pods of a scenario from its seed, as the API takes them.

A workload is a mixture of pods with a way of living: how many run to an end, how many are deleted before
their time, how many of those come back under the same name. About as much is asked for as the nodes have, so that some
pods wait and every mistake in the accounts shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from podium.kube.custom_object import POD_GROUP_LABEL
from podium.kube.json_object import JsonObject
from podium_cluster.kubelets.shapes import DRIVER

ZONES = ("a", "b", "c")
NAMESPACE = "default"
TEAMS = ("team-a", "team-b", "team-c")
"""Namespaces that have an ElasticQuota each, in workloads with quotas."""
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
LASTS = "podium.dev/lasts"
"""The annotation that says after how many seconds a pod ends by itself."""
RETURNS = "podium.dev/returns"
"""The annotation of a pod that comes back when it is evicted."""
FIXED, MADE = "fixed", "made"
"""Storage classes: of local volumes that are there from the start, and of volumes made on the chosen node."""
CLAIM_TEMPLATE = "one-device"
SHARED_CLAIMS = ("shared-0", "shared-1", "shared-2", "shared-3")
"""Resource claims that pods share, in workloads with devices."""
PRIORITIES = {"low": 10, "high": 1000, "urgent": 100_000}

Draw = Callable[[random.Random, JsonObject], None]


class PodMixture(NamedTuple):
    """A workload: how often each kind of pod is drawn (`pods`), and shares of all pods."""

    name: str
    pods: dict[Draw, float]
    ending: float = 0.2
    deleted: float = 0.1
    returning: float = 0.5
    """Of those deleted: how many come back under the same name."""


class Arrival(NamedTuple):
    """A pod that comes `at` seconds after the start; deleted so many seconds later, and back so many after that."""

    at: float
    pod: JsonObject
    deleted_after: float | None
    back_after: float | None


def draw_nodes(rng: random.Random) -> list[JsonObject]:
    return [_node(rng, number) for number in range(rng.randint(20, 40))]


def draw_arrivals(rng: random.Random, workload: PodMixture, nodes: list[JsonObject], seconds: float) -> list[Arrival]:
    """Pods within the first `seconds`, in bursts, that ask for 60 to 130 % of the nodes' CPUs all together."""
    offered = sum(int(node["status"]["allocatable"]["cpu"]) for node in nodes) * 1000
    wanted = offered * rng.uniform(0.6, 1.3)
    moments = [rng.uniform(0, seconds) for _ in range(rng.randint(5, 15))]
    kinds, weights = list(workload.pods), list(workload.pods.values())
    arrivals: list[Arrival] = []
    while wanted > 0 and len(arrivals) < 300:
        pod = _pod(rng, f"pod-{len(arrivals):03}")
        for draw in rng.choices(kinds, weights, k=1):
            draw(rng, pod)
        if rng.random() < workload.ending:
            pod["metadata"].setdefault("annotations", {})[LASTS] = f"{rng.uniform(2, 40):.3f}"
        else:
            wanted -= cpu_of(pod)
        goes = rng.uniform(0.01, seconds / 2) if rng.random() < workload.deleted else None
        back = rng.uniform(0.0, 5.0) if goes is not None and rng.random() < workload.returning else None
        arrivals.append(Arrival(rng.choice(moments) + rng.uniform(0, 2), pod, goes, back))
    return sorted(arrivals, key=lambda arrival: arrival.at)


def draw_groups(arrivals: list[Arrival]) -> list[JsonObject]:
    """The PodGroups of the pods; three quarters of the members must have a node before any starts."""
    sizes: dict[str, int] = {}
    for arrival in arrivals:
        name = arrival.pod["metadata"]["labels"].get(POD_GROUP_LABEL)
        if name:
            sizes[name] = sizes.get(name, 0) + 1
    return [
        {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"minMember": max(2, size * 3 // 4)}}
        for name, size in sorted(sizes.items())
    ]


def draw_quotas(rng: random.Random, nodes: list[JsonObject]) -> list[JsonObject]:
    """An ElasticQuota for each team; all min together are less than is wanted, so that teams borrow."""
    offered = sum(int(node["status"]["allocatable"]["cpu"]) for node in nodes)
    return [_quota(team, rng.uniform(0.08, 0.25) * offered, rng.uniform(1.0, 2.0)) for team in TEAMS]


def draw_quota_edits(rng: random.Random, quotas: list[JsonObject], seconds: float) -> list[tuple[float, JsonObject]]:
    """Quotas that are given other bounds within the first `seconds`: (when, what it is then)."""
    edits: list[tuple[float, JsonObject]] = []
    for _ in range(rng.randint(0, 3)):
        quota = rng.choice(quotas)
        least = int(quota["spec"]["min"]["cpu"].removesuffix("m")) / 1000 * rng.uniform(0.6, 1.4)
        edited = _quota(quota["metadata"]["namespace"], least, rng.uniform(1.0, 2.0))
        edits.append((rng.uniform(0, seconds), edited))
    return edits


def _quota(team: str, least: float, times: float) -> JsonObject:
    bounds = {"min": least, "max": least * times}
    spec = {name: {"cpu": f"{round(cpus * 1000)}m", "memory": f"{round(cpus * 8)}Gi"} for name, cpus in bounds.items()}
    return {"metadata": {"name": "quota", "namespace": team}, "spec": spec}


def draw_devices(rng: random.Random, nodes: list[JsonObject]) -> dict[str, int]:
    """How many devices each node has: all together about as many as pods ask for."""
    return {node["metadata"]["name"]: rng.choice([0, 1, 2, 2, 4]) for node in nodes}


def device_claims() -> list[JsonObject]:
    """The template and the shared claims that pods with devices refer to."""
    spec = {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": DRIVER}}]}}
    version = "resource.k8s.io/v1"
    template = {"name": CLAIM_TEMPLATE, "namespace": NAMESPACE}
    found: list[JsonObject] = [
        {"apiVersion": version, "kind": "ResourceClaimTemplate", "metadata": template, "spec": {"spec": spec}}
    ]
    for name in SHARED_CLAIMS:
        metadata = {"name": name, "namespace": NAMESPACE}
        found.append({"apiVersion": version, "kind": "ResourceClaim", "metadata": metadata, "spec": spec})
    return found


def draw_volumes(rng: random.Random, nodes: list[JsonObject]) -> list[JsonObject]:
    """Local volumes of the class FIXED, on some of the nodes."""
    chosen = [node["metadata"]["name"] for node in nodes for _ in range(2) if rng.random() < 0.2]
    return [_volume(f"volume-{number:02}", node) for number, node in enumerate(chosen)]


def claim_of(pod: JsonObject, name: str) -> JsonObject:
    """The claim that a pod with a volume comes with."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": pod["metadata"]["labels"]["app"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": name, "namespace": pod["metadata"]["namespace"]}, "spec": spec}


def cpu_of(pod: JsonObject) -> int:
    """In thousandths."""
    cpu: str = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(cpu.removesuffix("m"))


def _node(rng: random.Random, number: int) -> JsonObject:
    name = f"node-{number:02}"
    cpu, memory = rng.choice([(2, 8), (4, 8), (4, 16), (8, 32)])
    offered = {"cpu": str(cpu), "memory": f"{memory}Gi", "ephemeral-storage": "100Gi"}
    offered["pods"] = rng.choice(["110", "110", "12", "6"])
    labels = {HOSTNAME: name, ZONE: ZONES[number % 3], "disk": rng.choice(["ssd", "hdd"])}
    spec = {"taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]} if rng.random() < 0.1 else {}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"capacity": offered, "allocatable": offered, "conditions": conditions}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def _volume(name: str, node: str) -> JsonObject:
    host = {"key": HOSTNAME, "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": FIXED,
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": f"/disks/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def _pod(rng: random.Random, name: str) -> JsonObject:
    """One that asks for a little CPU and memory, and otherwise for nothing."""
    requests = {"cpu": f"{rng.choice([50, 100, 250, 500, 1000])}m", "memory": f"{rng.choice([64, 128, 512, 1024])}Mi"}
    container = {"name": "main", "image": "example.test/main:1", "resources": {"requests": requests}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 30}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": "plain"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


# Kinds of pods: each makes a plain pod into one of its kind.


def plain(rng: random.Random, pod: JsonObject) -> None:
    """As it is."""


def large(rng: random.Random, pod: JsonObject) -> None:
    requests = {"cpu": f"{rng.choice([1500, 2000, 3500])}m", "memory": f"{rng.choice([2, 4, 6])}Gi"}
    pod["spec"]["containers"][0]["resources"]["requests"] = requests


def too_large(rng: random.Random, pod: JsonObject) -> None:
    """No node will ever take it."""
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "64000m", "memory": "64Mi"}


def choosy(rng: random.Random, pod: JsonObject) -> None:
    pod["spec"]["nodeSelector"] = {"disk": "ssd"}


def batch(rng: random.Random, pod: JsonObject) -> None:
    pod["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]


def with_port(rng: random.Random, pod: JsonObject) -> None:
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": rng.choice([8080, 8081])}]


def important(rng: random.Random, pod: JsonObject) -> None:
    rng.choice([plain, large])(rng, pod)
    pod["spec"]["priorityClassName"] = rng.choice(["low", "high", "high", "urgent"])


def apart(rng: random.Random, pod: JsonObject) -> None:
    """No two of a group on one node."""
    group = _group(rng, pod, "apart", 4)
    pod["spec"]["affinity"] = {"podAntiAffinity": {_REQUIRED: [_term(group, HOSTNAME)]}}


def together(rng: random.Random, pod: JsonObject) -> None:
    """All of a group in one zone."""
    group = _group(rng, pod, "together", 4)
    pod["spec"]["affinity"] = {"podAffinity": {_REQUIRED: [_term(group, ZONE)]}}


def spread(rng: random.Random, pod: JsonObject) -> None:
    """A group evenly over zones, or over nodes."""
    group = _group(rng, pod, "spread", 4)
    rule = {"maxSkew": rng.choice([1, 2]), "topologyKey": rng.choice([ZONE, HOSTNAME])}
    rule["whenUnsatisfiable"] = rng.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])
    pod["spec"]["topologySpreadConstraints"] = [{**rule, "labelSelector": {"matchLabels": {"app": group}}}]


def with_volume(rng: random.Random, pod: JsonObject) -> None:
    """With a claim of its own, to be bound where the pod goes: to a volume that is there, or to one that is made."""
    name = pod["metadata"]["name"]
    pod["metadata"]["labels"] = {"app": rng.choice([FIXED, MADE])}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def with_device(rng: random.Random, pod: JsonObject) -> None:
    """With a device: of a claim that is made for the pod, or of one that several pods share."""
    shared = {"resourceClaimName": rng.choice(SHARED_CLAIMS)}
    source = shared if rng.random() < 0.25 else {"resourceClaimTemplateName": CLAIM_TEMPLATE}
    pod["spec"]["resourceClaims"] = [{"name": "device", **source}]
    pod["metadata"]["labels"] = {"app": "device"}


def in_gang(rng: random.Random, pod: JsonObject) -> None:
    """One of a PodGroup, all of which ask for the same."""
    number = rng.randrange(6)
    pod["metadata"]["labels"] = {"app": "gang", POD_GROUP_LABEL: f"gang-{number}"}
    requests = {"cpu": f"{(250, 500, 1000)[number % 3]}m", "memory": "128Mi"}
    pod["spec"]["containers"][0]["resources"]["requests"] = requests


def in_team(rng: random.Random, pod: JsonObject) -> None:
    """One of a namespace with a quota, now and then one of some priority."""
    rng.choice([plain, plain, large, important])(rng, pod)
    pod["metadata"]["namespace"] = rng.choice(TEAMS)


def promised(rng: random.Random, pod: JsonObject) -> None:
    """One of a controller with an SLO; now and then what it says cannot be read."""
    number = rng.randrange(12)
    slo = rng.choice(["1", "0.95", "0.9", "0.5", "0.5", "0", "7", "NaN"])
    measuring = ("independent", "average", "concurrent", "aggregate")[number % 4]
    pod["metadata"]["annotations"] = {"controller": f"promised-{number}", "slo": slo, "qosMeasuring": measuring}
    pod["metadata"]["annotations"][RETURNS] = "true"
    rng.choice([plain, large])(rng, pod)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _group(rng: random.Random, pod: JsonObject, kind: str, number: int) -> str:
    group = f"{kind}-{rng.randrange(number)}"
    pod["metadata"]["labels"] = {"app": group}
    return group


def _term(group: str, topology_key: str) -> JsonObject:
    return {"labelSelector": {"matchLabels": {"app": group}}, "topologyKey": topology_key}


EVERY: list[Draw] = [plain, large, choosy, batch, with_port, important, apart, together, spread, with_volume, too_large]
RARE: dict[Draw, float] = {too_large: 0.1, with_volume: 0.4}

WORKLOADS = {
    workload.name: workload
    for workload in (
        PodMixture("basic", {plain: 6, large: 2, choosy: 1, batch: 1, with_port: 0.5, too_large: 0.1}),
        PodMixture("preemption", {important: 6, plain: 3, too_large: 0.1}, ending=0.1),
        PodMixture("affinity", {apart: 3, together: 2, spread: 4, plain: 2}, ending=0.1),
        PodMixture("churn", {plain: 5, large: 2, important: 2, with_port: 1}, ending=0.4, deleted=0.4, returning=0.7),
        PodMixture(
            "volumes", {with_volume: 2, plain: 3, important: 1, large: 1}, ending=0.1, deleted=0.3, returning=0.8
        ),
        PodMixture("gangs", {in_gang: 6, plain: 3, important: 1}, ending=0.1, deleted=0.15, returning=0.8),
        PodMixture("quotas", {in_team: 8, plain: 1, important: 1}, ending=0.2, deleted=0.2, returning=0.8),
        PodMixture("devices", {with_device: 3, large: 4, plain: 1}, ending=0.2, deleted=0.25, returning=0.8),
        PodMixture("promises", {promised: 8, plain: 1, important: 1}, ending=0.1, deleted=0.15, returning=0.8),
        PodMixture("mixed", {**dict.fromkeys(EVERY, 1.0), **RARE, plain: 4.0, important: 3.0}, deleted=0.2),
    )
}


EVERY_SEED_WITH_GANGS = 8
EVERY_SEED_WITH_QUOTAS = 4
EVERY_SEED_WITH_DEVICES = 16
"""Of the seeds without a workload of their own every eighth has gangs, and of the odd ones every second has quotas; the
one before every sixteenth has devices."""


def workload_of(seed: int) -> PodMixture | None:
    """The workload that some of the seeds have; None: one of their own."""
    if seed % EVERY_SEED_WITH_GANGS == 0:
        return WORKLOADS["gangs"]
    if seed % EVERY_SEED_WITH_DEVICES == EVERY_SEED_WITH_DEVICES - 1:
        return WORKLOADS["devices"]
    return WORKLOADS["quotas"] if seed % EVERY_SEED_WITH_QUOTAS == 1 else None


def draw_workload(rng: random.Random) -> PodMixture:
    """A mixture of its own, where none is asked for."""
    kinds = {kind: rng.random() ** 2 * RARE.get(kind, 1.0) for kind in EVERY}
    return PodMixture("drawn", kinds, rng.uniform(0, 0.4), rng.uniform(0, 0.4), rng.random())
