"""Claims, templates, classes and slices with one thing changed at random, or two: both servers take or refuse them,
for the same reasons."""

import random
from typing import Final

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.session import FLAW, MERGE, STRATEGIC, Answer, Object, Session
from tests.podium_cluster.apiserver.contract.test_device_claims import CLAIMS, CLASSES, TEMPLATES, VERSION, selecting
from tests.podium_cluster.apiserver.contract.test_random_objects import changed, note, places, put_changed
from tests.podium_cluster.apiserver.contract.test_resource_slices import POOL, SLICES

DRIVER: Final = "gpu.example.com"
CONFIG: Final = {"opaque": {"driver": DRIVER, "parameters": {"a": {"b": [1]}}}}
REQUEST: Final = {
    "deviceClassName": "gpu",
    "selectors": selecting(f'device.attributes["{DRIVER}"].model == "a"'),
    "allocationMode": "ExactCount",
    "count": 2,
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 3}],
    "capacity": {"requests": {"memory": "1Gi", "other.example.com/n": "2"}},
}
CLAIM_SPEC: Final = {
    "devices": {
        "requests": [
            {"name": "r", "exactly": REQUEST},
            {"name": "q", "firstAvailable": [{"name": "a", **REQUEST}, {"name": "b", "deviceClassName": "gpu"}]},
        ],
        "constraints": [
            {"requests": ["r", "q/a"], "matchAttribute": f"{DRIVER}/model"},
            {"distinctAttribute": f"{DRIVER}/n"},
        ],
        "config": [{"requests": ["r", "q/b"], **CONFIG}, CONFIG],
    }
}
CLAIM: Final = {
    "apiVersion": VERSION,
    "kind": "ResourceClaim",
    "metadata": {"name": "random-claim", "labels": {"a": "b"}},
    "spec": CLAIM_SPEC,
}
TEMPLATE: Final = {
    "apiVersion": VERSION,
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "random-template"},
    "spec": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": CLAIM_SPEC},
}
CLASS: Final = {
    "apiVersion": VERSION,
    "kind": "DeviceClass",
    "metadata": {"name": "random-class"},
    "spec": {
        "selectors": selecting(f'device.driver == "{DRIVER}"'),
        "config": [CONFIG],
        "extendedResourceName": "example.com/gpu",
    },
}
NODES: Final = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}
COUNTERS: Final = [{"name": "set", "counters": {"memory": {"value": "8Gi"}, "n": {"value": "4"}}}]
DEVICE: Final = {
    "name": "d",
    "attributes": {"model": {"string": "a"}, "n": {"int": 1}, "ok": {"bool": True}, "e.com/v": {"version": "1.2.3"}},
    "capacity": {
        "memory": {
            "value": "8Gi",
            "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi", "step": "1Gi"}},
        },
        "n": {"value": "5", "requestPolicy": {"default": "1", "validValues": ["1", "3"]}},
    },
    "consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": "1Gi"}}}],
    "taints": [{"key": "t", "value": "v", "effect": "NoSchedule", "timeAdded": "2024-01-01T00:00:00Z"}],
    "bindsToNode": True,
    "bindingConditions": ["ready"],
    "bindingFailureConditions": ["broken"],
    "allowMultipleAllocations": True,
}


def slice_named(name: str, **spec: object) -> Object:
    metadata = {"name": name}
    return {
        "apiVersion": VERSION,
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": {"driver": DRIVER, "pool": POOL, **spec},
    }


SLICE: Final = slice_named("random-slice", nodeSelector=NODES, devices=[DEVICE, {"name": "e"}])
CHOOSING: Final = slice_named(
    "random-choosing",
    perDeviceNodeSelection=True,
    devices=[{**DEVICE, "nodeSelector": NODES}, {"name": "e", "allNodes": True}],
)
COUNTING: Final = slice_named("random-counting", nodeName="n", sharedCounters=COUNTERS)
OBJECTS: Final[tuple[tuple[str, Object], ...]] = (
    (CLAIMS, CLAIM),
    (SLICES, SLICE),
    (TEMPLATES, TEMPLATE),
    (SLICES, CHOOSING),
    (CLASSES, CLASS),
    (SLICES, COUNTING),
)
RESULT: Final = {
    "request": "r",
    "driver": DRIVER,
    "pool": "p",
    "device": "d",
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "bindingConditions": ["ready"],
    "bindingFailureConditions": ["broken"],
    "shareID": "8f1c7a2e-8b1f-4f52-9c1e-0a5e6f7d8c9b",
    "consumedCapacity": {"memory": "1Gi"},
}
CONDITION: Final = {
    "type": "ready",
    "status": "True",
    "reason": "Fine",
    "message": "m",
    "lastTransitionTime": "2024-01-01T00:00:00Z",
    "observedGeneration": 1,
}
STATUS: Final[Object] = {
    "allocation": {
        "devices": {
            "results": [RESULT, {"request": "q/a", "driver": DRIVER, "pool": "p", "device": "e"}],
            "config": [{"source": "FromClaim", "requests": ["r"], **CONFIG}],
        },
        "nodeSelector": NODES,
        "allocationTimestamp": "2024-01-01T00:00:00Z",
    },
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    "devices": [
        {
            "driver": DRIVER,
            "pool": "p",
            "device": "e",
            "conditions": [CONDITION],
            "data": {"x": 1},
        }
    ],
}

ALLOCATED: Final[Object] = {
    **STATUS,
    "reservedFor": [{"resource": "pods", "name": name, "uid": f"u{name}"} for name in ("p", "q")],
    "devices": [
        *STATUS["devices"],
        {"driver": DRIVER, "pool": "p", "device": "d", "shareID": RESULT["shareID"]},
    ],
}


def one_or_two_changed(seed: int, obj: Object) -> Object:
    """Two changes may leave two things wrong; every fourth seed makes them."""
    rng = random.Random(seed)
    found = changed(rng, obj)
    return changed(rng, found) if seed % 4 == 0 and places(found) else found


def has_plain_keys(patch: Object) -> bool:
    """Whether the field by which a strategic merge finds entries is never a list or an object."""
    users = patch["status"].get("reservedFor") if isinstance(patch.get("status"), dict) else None
    entries = users if isinstance(users, list) else []
    return not any(isinstance(user.get("uid"), list | dict) for user in entries if isinstance(user, dict))


def put_status(api: Session, part: Object, name: str = "random-claim", *, dry_run: bool = False) -> Answer:
    path = f"{CLAIMS}/{name}"
    body = {**CLAIM, **part, "metadata": api.get(path, note=False).body["metadata"]}
    return api.put(f"{path}/status", body, query={"dryRun": "All"} if dry_run else {}, note=False)


@contract
def test_new_device_objects(api: Session) -> None:
    for seed in range(240):
        path, obj = OBJECTS[seed % len(OBJECTS)]
        note(api, seed, api.create(path, one_or_two_changed(seed, obj), query={"dryRun": "All"}, note=False))


@contract
def test_new_states_of_device_objects(api: Session) -> None:
    for path, obj in OBJECTS:
        assert api.create(path, obj, note=False).code == 201
    for seed in range(10000, 10160):
        path, obj = OBJECTS[seed % len(OBJECTS)]
        note(api, seed, put_changed(api, path, obj, one_or_two_changed(seed, obj)))
    for path, obj in OBJECTS:
        api.delete(f"{path}/{obj['metadata']['name']}", note=False)


@contract
def test_new_statuses_of_claims(api: Session) -> None:
    assert api.create(CLAIMS, CLAIM, note=False).code == 201
    for seed in range(20000, 20160):
        note(api, seed, put_status(api, one_or_two_changed(seed, {"status": STATUS}), dry_run=True))


@contract
def test_new_statuses_of_allocated_claims(api: Session) -> None:
    for going in (False, True):
        name = "going" if going else "staying"
        claim = {**CLAIM, "metadata": {"name": name, "finalizers": ["example.com/f"]}}
        assert api.create(CLAIMS, claim, note=False).code == 201
        assert put_status(api, {"status": ALLOCATED}, name).code == 200
        if going:
            api.delete(f"{CLAIMS}/{name}", note=False)
        for seed in range(30000, 30080):
            status = one_or_two_changed(seed, {"status": ALLOCATED})
            if seed % 8 == 0:
                status["status"] = {**ALLOCATED, "allocation": None}
            note(api, seed, put_status(api, status, name, dry_run=True))


@contract
def test_users_come_and_go(api: Session) -> None:
    assert api.create(CLAIMS, {**CLAIM, "metadata": {"name": "random-claim", "finalizers": ["e.x/f"]}}).code == 201
    users = [{"resource": "pods", "name": f"n{at}", "uid": f"u{at}"} for at in range(4)]
    for going in (False, True):
        if going:
            api.delete(f"{CLAIMS}/random-claim")
        for reserved in (users[:1], users[:3], users[1:3], [*users[:1], *users[:1]], [], users[3:]):
            note(api, 0, put_status(api, {"status": {**STATUS, "reservedFor": reserved}}))
        for status in ({**STATUS, "allocation": None}, {"devices": STATUS["devices"]}, {}):
            note(api, 0, put_status(api, {"status": status}))


@contract
def test_patches_of_statuses(api: Session) -> None:
    path = f"{CLAIMS}/random-claim"
    plain = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    assert api.create(CLAIMS, {**CLAIM, "spec": plain}, note=False).code == 201
    allocation = {"devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "p", "device": "e"}]}}
    status = {**STATUS, "allocation": allocation}
    assert put_status(api, {"status": status}).code == 200
    for seed in range(40000, 40120):
        rng = random.Random(seed)
        part = {field: status[field] for field in status if rng.random() < 0.6} or {"reservedFor": []}
        patch = changed(rng, {"status": part})
        if seed % 2 and not has_plain_keys(patch):
            continue  # kube-apiserver fails on it and does not answer
        answer = api.patch(f"{path}/status", patch, (MERGE, STRATEGIC)[seed % 2], query={"dryRun": "All"}, note=False)
        if FLAW.search(answer.message) or answer.message.startswith(' "" is invalid: patch: '):
            api.note(seed, answer.code)
        else:
            note(api, seed, answer)
