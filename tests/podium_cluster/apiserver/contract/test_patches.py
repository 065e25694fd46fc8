"""Patches over the wire: each kind, what it refuses, and random ones of each."""

import random
from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    config_map,
    deployment,
    node,
)
from tests.podium_cluster.apiserver.contract.session import APPLY, JSON_PATCH, MERGE, STRATEGIC, Session

Object = dict[str, Any]


@contract
def test_a_merge_patch_merges_maps_and_replaces_lists(api: Session) -> None:
    api.create(DEPLOYMENTS, deployment())
    container = {"name": "x", "image": "y"}
    patch = {"spec": {"replicas": 2, "template": {"spec": {"containers": [container], "nodeSelector": {"a": "b"}}}}}
    found = api.patch(f"{DEPLOYMENTS}/d", patch, MERGE).body["spec"]
    assert [each["name"] for each in found["template"]["spec"]["containers"]] == ["x"]
    api.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": None, "template": {"spec": {"nodeSelector": None}}}}, MERGE)


@contract
def test_a_strategic_patch_merges_lists_by_key(api: Session) -> None:
    api.create(DEPLOYMENTS, deployment())
    containers: list[Object] = [{"name": "side", "image": "s"}, {"name": "c", "env": [{"name": "A", "value": "1"}]}]
    found = api.patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": containers}}}}, STRATEGIC).body
    assert {each["name"] for each in found["spec"]["template"]["spec"]["containers"]} == {"side", "c"}
    removed = [{"$patch": "delete", "name": "side"}]
    api.patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": removed}}}}, STRATEGIC)
    strategy = {"$retainKeys": ["type"], "type": "Recreate"}
    assert api.patch(f"{DEPLOYMENTS}/d", {"spec": {"strategy": strategy}}, STRATEGIC).body["spec"]["strategy"] == {
        "type": "Recreate"
    }


@contract
def test_a_json_patch_tests_and_changes(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map(a="1"))
    operations = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "2"}]
    assert api.patch(f"{CONFIG_MAPS}/c", operations, JSON_PATCH).body["data"] == {"a": "1", "b": "2"}
    refused = api.patch(f"{CONFIG_MAPS}/c", [{"op": "test", "path": "/data/a", "value": "9"}], JSON_PATCH)
    assert refused.code == 422
    api.patch(f"{CONFIG_MAPS}/c", [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}], JSON_PATCH)


@contract
def test_bodies_that_are_no_patch_are_refused(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map())
    for kind in (MERGE, STRATEGIC, JSON_PATCH):
        for body in (b"{", b"[1]", b'"x"', b"", b"null", b"{]", b'{"a" 1}', b"[1 2]"):
            api.call("PATCH", f"{CONFIG_MAPS}/c", body, content_type=kind)


@contract
def test_directives_that_make_no_sense_are_refused(api: Session) -> None:
    api.create(DEPLOYMENTS, deployment(), note=False)
    for patch in (
        {
            "metadata": {"labels": {"$patch": "keep"}},
            "spec": {"template": {"metadata": {"labels": {"$patch": "keep"}}}},
        },
        {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
        {"spec": {"template": {"spec": {"containers": ["x"]}}}},
        {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}},
        {"spec": {"template": {"spec": {"$setElementOrder/containers": "x"}}}},
    ):
        api.patch(f"{DEPLOYMENTS}/d", patch, STRATEGIC)


@contract
def test_a_patch_of_another_media_type_is_refused(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map())
    api.call("PATCH", f"{CONFIG_MAPS}/c", b"{}", content_type="application/json")
    api.call("PATCH", f"{CONFIG_MAPS}/c", b"{}", content_type="text/plain")


@contract
def test_values_of_the_wrong_type_are_a_flaw_of_the_patch(api: Session) -> None:
    api.create(DEPLOYMENTS, deployment(), note=False)
    api.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": "x"}}, STRATEGIC)
    api.patch(f"{DEPLOYMENTS}/d", {"spec": {"foo": 1}}, STRATEGIC, query={"fieldValidation": "Strict"})
    api.patch(f"{DEPLOYMENTS}/d", {"spec": {"foo": 1}}, STRATEGIC)
    wrong = api.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": "x"}}, MERGE, note=False)
    assert (wrong.code, wrong.reason) == (422, "Invalid")
    assert wrong.message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert wrong.message.endswith("DeploymentSpec.spec.replicas of type int32")


@contract
def test_patch_options_are_checked(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map(), note=False)
    api.patch(f"{CONFIG_MAPS}/c", {}, APPLY)
    api.patch(f"{CONFIG_MAPS}/c", {}, MERGE, query={"force": "true"})
    api.patch(f"{CONFIG_MAPS}/c", {}, MERGE, query={"dryRun": "Never"})
    api.patch(f"{CONFIG_MAPS}/c", {}, MERGE, query={"fieldValidation": "Always"})
    api.patch(f"{CONFIG_MAPS}/c", {}, MERGE, query={"fieldManager": "x" * 129})


def _containers(rng: random.Random) -> list[Object]:
    full = {"resources": {}, "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
    return [{"name": name, "image": rng.choice("ij"), "env": _environment(rng), **full} for name in ("c1", "c2", "c3")]


def _environment(rng: random.Random) -> list[Object]:
    return [{"name": name, "value": rng.choice("xy")} for name in rng.sample("ABC", rng.randint(0, 3))]


def _strategic_containers(rng: random.Random) -> list[Object]:
    found: list[Object] = []
    for name in rng.sample(["c1", "c2", "c3", "c4"], rng.randint(1, 3)):
        entry: Object = {"name": name, "image": "k"}
        if rng.random() < 0.25:
            entry = {"$patch": "delete", "name": name}
        elif rng.random() < 0.5:
            entry["env"] = [
                {"name": key, "value": "z"} if rng.random() < 0.7 else {"$patch": "delete", "name": key}
                for key in rng.sample("ABCD", rng.randint(1, 3))
            ]
            if rng.random() < 0.3:
                entry["$setElementOrder/env"] = [{"name": key} for key in "DCBA"]
        found.append(entry)
    return found


@contract
def test_random_strategic_patches_give_the_same_objects(api: Session) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        name = f"d{seed}"
        given = deployment(name)
        given["metadata"] |= {"labels": {"l": "1", "m": "2"}, "finalizers": ["e.x/f", "e.x/g"]}
        given["spec"]["template"]["spec"]["containers"] = _containers(rng)
        api.create(DEPLOYMENTS, given, note=False)
        metadata: Object = {"labels": {key: rng.choice(["x", None]) for key in rng.sample("lmn", 2)}}
        if rng.random() < 0.3:
            metadata["labels"] = rng.choice([None, {"$patch": "replace", "q": "1"}, {"$patch": "delete"}])
        if rng.random() < 0.4:
            metadata["finalizers"] = rng.sample(["e.x/f", "e.x/g", "e.x/h"], rng.randint(0, 3))
        elif rng.random() < 0.3:
            metadata["$deleteFromPrimitiveList/finalizers"] = ["e.x/f"]
        inner: Object = {"containers": _strategic_containers(rng)}
        if rng.random() < 0.3:
            inner["$setElementOrder/containers"] = [{"name": each} for each in ("c4", "c3", "c2", "c1")]
        if rng.random() < 0.3:
            inner["tolerations"] = rng.choice([[], [{"key": "y", "operator": "Exists"}], None])
        patch = {"metadata": metadata, "spec": {"template": {"spec": inner}}}
        api.patch(f"{DEPLOYMENTS}/{name}", patch, STRATEGIC)


@contract
def test_random_merge_patches_give_the_same_objects(api: Session) -> None:
    name = f"{api.namespace}-n"
    api.create(NODES, node(name, taints=[{"key": "a", "effect": "NoSchedule"}]), note=False)
    rng = random.Random(1)
    for _ in range(40):
        metadata = {"labels": {key: rng.choice(["x", "y", None]) for key in rng.sample("lmn", 2)}}
        taints = rng.choice([None, [], [{"key": "q", "effect": "NoExecute"}], [{"key": "r", "effect": "NoSchedule"}]])
        spec = rng.choice([{}, {"taints": taints}, {"unschedulable": rng.choice([True, False, None])}])
        api.patch(f"{NODES}/{name}", {"metadata": metadata, "spec": spec}, MERGE)
    api.delete(f"{NODES}/{name}", note=False)


@contract
def test_random_json_patches_give_the_same_objects(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map(labels={"l": "1"}, a="1", b="2"))
    rng = random.Random(2)
    paths = [
        "/metadata/labels/l",
        "/metadata/labels/x~1y",
        "/metadata/labels",
        "/data/a",
        "/data/b",
        "/data/c",
        "/data",
    ]
    for _ in range(60):
        operations = []
        for _ in range(rng.randint(1, 2)):
            operation: Object = {
                "op": rng.choice(["add", "remove", "replace", "move", "copy", "test"]),
                "path": rng.choice(paths),
            }
            if operation["op"] in ("move", "copy"):
                operation["from"] = rng.choice(paths)
            else:
                operation["value"] = rng.choice(["1", "2", {"l": "3"}])
            operations.append(operation)
        answer = api.patch(f"{CONFIG_MAPS}/c", operations, JSON_PATCH, note=False)
        api.note(answer.code, answer.body if answer.code == 200 else answer.reason)
        if answer.code == 200 and not answer.body.get("data"):
            api.put(f"{CONFIG_MAPS}/c", config_map(labels={"l": "1"}, a="1", b="2"))
