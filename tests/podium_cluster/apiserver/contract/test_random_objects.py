"""Objects with one thing changed at random: both servers take or refuse them, for the same reasons.

One field of a full object is removed, doubled, or given a value from a list of awkward ones. WriteFailures are compared
without the listing of differences that ends some of them, and in any order.
"""

import copy
import random
from typing import Any, Final

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import DEPLOYMENTS, NODES, PODS
from tests.podium_cluster.apiserver.contract.session import OWN_WORDS, Answer, Object, Session

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
BUDGETS: Final = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
AWKWARD: Final[tuple[Any, ...]] = (
    *(None, "", 0, -1, 1, 5, 1.5, True, False, "x", "Bad_Name", "a/b/c", "bad value!", "x" * 70, "-1", "1Gi", "100%"),
    *([], {}, ["x"], {"x": "y"}, 99999999999, "Always", "2020-01-01T00:00:00Z"),
)
SELECTOR: Final = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
CONTAINER: Final = {
    "name": "c",
    "image": "i",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}],
    "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP", "hostPort": 8080}],
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
    "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "z"}],
    "livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 3},
    "readinessProbe": {"tcpSocket": {"port": 80}},
}
POD_SPEC: Final = {
    "containers": [CONTAINER],
    "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "hostPath": {"path": "/x"}}],
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]},
            PREFERRED: [{"weight": 5, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}],
        },
        "podAntiAffinity": {REQUIRED: [{"labelSelector": SELECTOR, "topologyKey": "zone", "namespaces": ["x"]}]},
    },
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 3}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "minDomains": 2,
        }
    ],
    "nodeSelector": {"k": "v"},
    "terminationGracePeriodSeconds": 5,
    "hostname": "h",
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}],
}
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {"x": "y"}},
    "spec": {**POD_SPEC, "schedulingGates": [{"name": "e.x/g"}], "activeDeadlineSeconds": 9},
}
DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "labels": {"a": "b"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": POD_SPEC},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
        "minReadySeconds": 1,
        "progressDeadlineSeconds": 60,
    },
}
NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "random-node", "labels": {"a": "b"}},
    "spec": {
        "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        "podCIDR": "10.0.0.0/24",
        "providerID": "x",
    },
    "status": {"capacity": {"cpu": "4", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
BUDGET: Final = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b"},
    "spec": {"minAvailable": "50%", "selector": SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
}
OBJECTS: Final[tuple[tuple[str, Object], ...]] = (
    (PODS, POD),
    (DEPLOYMENTS, DEPLOYMENT),
    (NODES, NODE),
    (BUDGETS, BUDGET),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path and path not in (("kind",), ("apiVersion",)) else []
    for key, each in inner:
        found += places(each, (*path, key))
    return found


def changed(rng: random.Random, obj: Object) -> Object:
    found = copy.deepcopy(obj)
    *above, last = rng.choice(places(found))
    target: Any = found
    for key in above:
        target = target[key]
    how = rng.random()
    if how < 0.15 and isinstance(target, dict):
        del target[last]
    elif how < 0.25 and isinstance(target, list):
        target.append(copy.deepcopy(target[last]))
    elif how < 0.3 and isinstance(target, dict):
        target["unknownField"] = 1
    else:
        target[last] = copy.deepcopy(rng.choice(AWKWARD))
    return found


def note(api: Session, seed: int, answer: Answer) -> None:
    details = answer.body.get("details") or {} if answer.code >= 400 else {}
    if answer.code == 422 and details.get("kind") in OWN_WORDS:
        api.note(seed, answer.code)
        return
    causes = [f"{cause['field']}: {cause['message'].splitlines()[0]}" for cause in details.get("causes", [])]
    if answer.code < 400:
        answer.body["metadata"].pop("name", None)  # it may be a generated one
    api.note(seed, answer.code, sorted(causes) or (answer.body if answer.code < 400 else answer.message))


def put_changed(api: Session, path: str, obj: Object, new: Object) -> Answer:
    """Try to replace an object by a changed one of the same name, on the version that is there."""
    name = obj["metadata"]["name"]
    if isinstance(new.get("metadata"), dict):
        new["metadata"]["name"] = name
        new["metadata"]["resourceVersion"] = api.get(f"{path}/{name}", note=False).version
    return api.put(f"{path}/{name}", new, query={"dryRun": "All"}, note=False)


@contract
def test_new_objects(api: Session) -> None:
    for seed in range(160):
        rng = random.Random(seed)
        path, obj = OBJECTS[seed % len(OBJECTS)]
        note(api, seed, api.create(path, changed(rng, obj), query={"dryRun": "All"}, note=False))


@contract
def test_new_states_of_objects(api: Session) -> None:
    for path, obj in OBJECTS:
        assert api.create(path, obj, note=False).code == 201
    for seed in range(1000, 1160):
        path, obj = OBJECTS[seed % len(OBJECTS)]
        note(api, seed, put_changed(api, path, obj, changed(random.Random(seed), obj)))
    api.delete(f"{NODES}/random-node", note=False)
