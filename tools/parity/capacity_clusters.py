"""Random clusters on a real API server, and what Podium says of them."""

import itertools
import json
import random
from collections import Counter
from typing import Any

from podium.config.load import default_config
from podium.kube import decode_documents
from podium.kube.admission import as_admitted
from podium.kube.versions import find_rules
from podium.plugins import load_registry
from podium.whatif.capacity import CapacityAnswer, Template, capacity
from podium.whatif.manifests import read_given, template_pod
from podium.whatif.sandbox import Sandbox
from tools.testbed import ControlPlane
from tools.testbed.build import MINOR

REGISTRY = load_registry()
KINDS = "nodes,pods,namespaces,services,replicasets,statefulsets,pdb,priorityclasses,pv,pvc,storageclasses"
CONTROLLERS = ("deployment-controller", "replicaset-controller", "disruption-controller")
ZONES = ("a", "b", "c")
BATCHES = itertools.count()

Object = dict[str, Any]


def sandbox(plane: ControlPlane) -> Sandbox:
    """The cluster as Podium sees it in a dump."""
    dump = plane.kubectl("get", KINDS, "-A", "-o", "json")
    objects = as_admitted(decode_documents(dump, "dump.json").objects)
    return Sandbox(objects, default_config(REGISTRY, find_rules(MINOR).rules), REGISTRY)


def node(rng: random.Random, name: str) -> Object:
    cpu, memory, slots = rng.choice((2, 4, 8)), rng.choice((4, 8, 16)), rng.choice((6, 20, 110))
    resources = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": str(slots)}
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": rng.choice(ZONES),
        "disk": rng.choice(("ssd", "hdd")),
    }
    taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if rng.random() < 0.15 else []
    made: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": rng.random() < 0.1},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return made


def spec_of(rng: random.Random, app: str) -> Object:
    """A pod's specification with some of: affinity, spread, ports, selector, toleration."""
    requests = {
        "cpu": f"{rng.choice((250, 400, 500, 700, 1000))}m",
        "memory": f"{rng.choice((256, 512, 1024, 1536))}Mi",
    }
    spec: Object = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "app", "resources": {"requests": requests}}],
    }
    mine = {"matchLabels": {"app": app}}
    if rng.random() < 0.25:
        key = rng.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone"))
        term = {"topologyKey": key, "labelSelector": mine}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if rng.random() < 0.3:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.randrange(1, 3),
                "topologyKey": rng.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone")),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": mine,
            }
        ]
    if rng.random() < 0.2:
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    if rng.random() < 0.3:
        spec["nodeSelector"] = {"disk": "ssd"}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return spec


def deployment(name: str, spec: Object, replicas: int) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def settled(plane: ControlPlane, app: str, number: int) -> list[Object]:
    """The pods of a Deployment, once each is bound or refused."""

    def done(pods: list[Object]) -> bool:
        mine = [pod for pod in pods if pod["metadata"].get("labels", {}).get("app") == app]
        return len(mine) == number and all(pod["spec"].get("nodeName") or refusal(pod) for pod in mine)

    found = plane.client.poll("Pod", done, "default", timeout=60.0)
    return [pod for pod in found if pod["metadata"].get("labels", {}).get("app") == app]


def refusal(pod: Object) -> str:
    conditions = pod.get("status", {}).get("conditions") or ()
    return next(
        (c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), ""
    )


def started(plane: ControlPlane, rng: random.Random, nodes: int, apps: int) -> None:
    """Nodes, and Deployments that run on them, of names that no cluster before had: controllers may be late."""
    plane.wipe()
    batch = next(BATCHES)
    for number in range(nodes):
        plane.client.create(node(rng, f"n{number}"))
    for number in range(apps):
        replicas = rng.randrange(1, 5)
        app = f"app{number}-{batch}"
        plane.client.create(deployment(app, spec_of(rng, app), replicas))
        settled(plane, app, replicas)


def without_pending(plane: ControlPlane) -> None:
    """Scale Deployments down to the pods that have a node."""
    counts = Counter(app_of(pod) for pod in plane.client.list("Pod", "default") if pod["spec"].get("nodeName"))
    for each in plane.client.list("Deployment", "default"):
        name = each["metadata"]["name"]
        plane.client.patch("Deployment", name, {"spec": {"replicas": counts[name]}})
    plane.client.poll(
        "Pod", lambda pods: len(pods) == counts.total() and all(pod["spec"].get("nodeName") for pod in pods), "default"
    )


def predicted(plane: ControlPlane, manifest: Object) -> CapacityAnswer:
    given = read_given([(json.dumps(manifest), "deployment.json")])
    state = sandbox(plane)
    pod, others = template_pod(given, [], "the files")
    return capacity(state, [Template(pod)], others=others)


def all_settled(plane: ControlPlane, number: int) -> list[Object]:
    """All pods, once there are so many, each bound or refused."""

    def done(pods: list[Object]) -> bool:
        return len(pods) == number and all(pod["spec"].get("nodeName") or refusal(pod) for pod in pods)

    return plane.client.poll("Pod", done, "default", timeout=60.0)


def app_of(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["app"])
