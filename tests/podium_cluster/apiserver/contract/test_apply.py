"""Server-side apply: ownership, conflicts, force, sharing, removal; and long random histories of it."""

import json
import random
from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import CONFIG_MAPS, DEPLOYMENTS, NODES, config_map, deployment
from tests.podium_cluster.apiserver.contract.session import APPLY, Answer, Session

Object = dict[str, Any]


def owners(answer: Answer) -> list[Any]:
    """managedFields without times, in an order of their own."""
    entries = answer.body["metadata"].get("managedFields", [])
    shown = [{key: value for key, value in entry.items() if key != "time"} for entry in entries]
    return sorted(shown, key=lambda entry: (entry["manager"], entry["operation"], entry.get("subresource", "")))


def note_owners(api: Session, answer: Answer) -> None:
    api.note(
        "owners", [{**entry, "fieldsV1": json.dumps(entry["fieldsV1"], sort_keys=True)} for entry in owners(answer)]
    )


@contract
def test_applying_creates_and_then_updates(api: Session) -> None:
    created = api.apply(f"{CONFIG_MAPS}/c", config_map(a="1"), "m")
    assert created.code == 201
    note_owners(api, created)
    updated = api.apply(f"{CONFIG_MAPS}/c", config_map(b="2"), "m")
    assert updated.body["data"] == {"b": "2"}
    note_owners(api, updated)


@contract
def test_applying_the_same_again_changes_nothing(api: Session) -> None:
    first = api.apply(f"{DEPLOYMENTS}/d", deployment(), "m")
    assert api.apply(f"{DEPLOYMENTS}/d", deployment(), "m").version == first.version


@contract
def test_another_managers_field_is_a_conflict(api: Session) -> None:
    api.apply(f"{DEPLOYMENTS}/d", deployment(replicas=1), "one")
    refused = api.apply(f"{DEPLOYMENTS}/d", deployment(replicas=2), "two")
    assert (refused.code, refused.reason) == (409, "Conflict")
    several = deployment(replicas=3)
    several["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    api.apply(f"{DEPLOYMENTS}/d", several, "two")
    forced = api.apply(f"{DEPLOYMENTS}/d", several, "two", force=True)
    note_owners(api, forced)
    api.apply(f"{DEPLOYMENTS}/d", deployment(replicas=1), "one")


@contract
def test_an_update_takes_fields_from_appliers(api: Session) -> None:
    api.apply(f"{CONFIG_MAPS}/c", config_map(a="1", b="2"), "one")
    updated = api.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "9"}}, query={"fieldManager": "hand"})
    note_owners(api, updated)
    api.apply(f"{CONFIG_MAPS}/c", config_map(a="1", b="2"), "one")


@contract
def test_what_cannot_be_applied(api: Session) -> None:
    api.apply(f"{CONFIG_MAPS}/c", config_map(), "m", note=False)
    path = f"{CONFIG_MAPS}/c"
    api.apply(path, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}, "m")
    api.apply(path, {}, "m")
    api.apply(path, {**config_map(), "extra": 1}, "m")
    api.apply(path, {**config_map(), "data": {"a": 1}}, "m")
    api.apply(path, {**config_map(), "data": ["a"]}, "m")
    api.apply(path, config_map("other"), "m")
    for metadata in ("x", 5, {"name": 5}, {"name": "c", "managedFields": "x"}, None):
        api.apply(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, "m")
    api.apply(path, {"apiVersion": "v1", "kind": 5}, "m")
    managed = config_map()
    managed["metadata"]["managedFields"] = []
    api.apply(path, managed, "m")
    twice = deployment()
    twice["spec"]["template"]["spec"]["containers"] *= 2
    api.apply(f"{DEPLOYMENTS}/d", twice, "m")
    api.apply(f"{DEPLOYMENTS}/none/status", deployment("none"), "m")


@contract
def test_the_status_is_applied_through_its_own_path(api: Session) -> None:
    api.apply(f"{DEPLOYMENTS}/d", deployment(), "m", note=False)
    status = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": 2}}
    found = api.apply(f"{DEPLOYMENTS}/d/status", status, "controller")
    assert found.body["status"]["replicas"] == 2
    note_owners(api, found)
    note_owners(api, api.apply(f"{DEPLOYMENTS}/d", {**deployment(), "status": {"replicas": 7}}, "m"))


@contract
def test_a_dry_run_of_apply_changes_nothing(api: Session) -> None:
    assert api.apply(f"{CONFIG_MAPS}/c", config_map(a="1"), "m", query={"dryRun": "All"}).code == 201
    assert api.get(f"{CONFIG_MAPS}/c").code == 404


@contract
def test_yaml_may_be_applied(api: Session) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: 'yes'\n"
    found = api.call("PATCH", f"{CONFIG_MAPS}/c", text, content_type=APPLY, query={"fieldManager": "m"})
    assert found.body["data"] == {"a": "yes"}


@contract
def test_taints_of_a_node_belong_to_whoever_applied_them_last(api: Session) -> None:
    name = f"{api.namespace}-n"
    given = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    taints = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
    note_owners(api, api.apply(f"{NODES}/{name}", {**given, "spec": taints}, "one"))
    api.apply(f"{NODES}/{name}", {**given, "spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}, "two")
    api.apply(f"{NODES}/{name}", given, "one")
    api.delete(f"{NODES}/{name}", note=False)


def _random_config_map(rng: random.Random, name: str) -> Object:
    data = {key: rng.choice("xy") for key in rng.sample("abcd", rng.randint(0, 4))}
    labels = {key: rng.choice("xy") for key in rng.sample("lmn", rng.randint(0, 2))}
    found = config_map(name, labels=labels, **data)
    if rng.random() < 0.4:
        found["metadata"]["finalizers"] = rng.sample(["e.x/f", "e.x/g", "e.x/h"], rng.randint(1, 2))
    return found


def _random_deployment(rng: random.Random, name: str) -> Object:
    found = deployment(name)
    if rng.random() < 0.5:
        found["spec"]["replicas"] = rng.choice([1, 2])
    containers = []
    for each in rng.sample(["c1", "c2", "c3"], rng.randint(1, 3)):
        container: Object = {"name": each, "image": rng.choice("ij")}
        if rng.random() < 0.4:
            container["env"] = [{"name": key, "value": rng.choice("xy")} for key in rng.sample("ABC", 2)]
        if rng.random() < 0.4:
            container["ports"] = [{"containerPort": port} for port in rng.sample([80, 81, 82], 2)]
        if rng.random() < 0.3:
            container["args"] = [rng.choice("pq")]
        containers.append(container)
    inner = found["spec"]["template"]["spec"]
    inner["containers"] = containers
    if rng.random() < 0.3:
        inner["nodeSelector"] = {"k": rng.choice("xy")}
    if rng.random() < 0.3:
        found["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": rng.choice([1, "25%"])}}
    return found


def _history(api: Session, path: str, make: Any, seeds: int) -> None:
    for seed in range(seeds):
        rng = random.Random(seed)
        name = f"x{seed}"
        api.apply(f"{path}/{name}", make(rng, name), "m1", note=False)
        for _ in range(5):
            manager, force = rng.choice(["m1", "m2", "m3"]), rng.random() < 0.4
            answer = api.apply(f"{path}/{name}", make(rng, name), manager, force=force)
            if answer.code == 200:
                note_owners(api, answer)


@contract
def test_random_histories_of_config_maps_leave_the_same_owners(api: Session) -> None:
    _history(api, CONFIG_MAPS, _random_config_map, 15)


@contract
def test_random_histories_of_deployments_leave_the_same_owners(api: Session) -> None:
    _history(api, DEPLOYMENTS, _random_deployment, 15)
