"""What is filled in, compared with the real API server for every kind, and the rules it cannot show."""

import copy
from typing import Any

import msgspec
import pytest

from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.schema import schema_of
from tests.podium_cluster.apiserver.schema.default_cases import OTHERS, PODS, WORKLOADS, Object, container, pod
from tools.testbed.cluster import ControlPlane

# What comes from admission, allocation and the strategies of kinds, not from defaults.
ALLOCATED: dict[str, set[str]] = {
    "Service": {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"},
    "Job": {"selector", "template"},
    "Namespace": {"finalizers"},
}
ADDED_LATER = {"uid", "creationTimestamp", "generation", "resourceVersion", "managedFields", "namespace"}


def taken(obj: Object) -> Object:
    schema = schema_of(built_in(obj["apiVersion"], obj["kind"]))
    found = copy.deepcopy(obj)
    assert schema.take(found, msgspec.json.encode(obj)) == []
    schema.apply_defaults(found)
    return found


def comparable(obj: Object) -> Object:
    """Without what defaults do not decide; a status only where defaults write one."""
    found = copy.deepcopy(obj)
    found["metadata"] = {key: value for key, value in found["metadata"].items() if key not in ADDED_LATER}
    if found["kind"] in ("Job", "DaemonSet"):  # theirs are made from the uid and the generation
        found["metadata"] = {"name": found["metadata"]["name"]}
    if found["kind"] not in ("Node", "PersistentVolumeClaim", "Namespace"):
        found.pop("status", None)
    for field in ALLOCATED.get(found["kind"], ()):
        found["spec"].pop(field, None)
    for port in found.get("spec", {}).get("ports", ()):
        port.pop("nodePort", None)
    complete: Object = without_nulls(found)
    return complete


def without_nulls(value: Any) -> Any:
    """The API server writes null for some lists that were not given; here they are left out."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def label(obj: Object) -> str:
    said = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    return f"{obj['kind']} {msgspec.json.encode(said).decode()[:60]}"


@pytest.mark.parametrize("obj", [*PODS, *WORKLOADS, *OTHERS], ids=label)
def test_an_object_is_completed_as_the_api_server_completes_it(control_plane: ControlPlane, obj: Object) -> None:
    client = control_plane.client
    resource = client.resource_of(obj)
    path = resource.path("default" if resource.namespaced else None)
    answer: dict[str, Any] = msgspec.json.decode(client.request("POST", path, obj, query={"dryRun": "All"}))
    assert comparable(taken(obj)) == comparable(answer)


def test_defaults_are_not_shared_between_objects() -> None:
    first, second = taken(pod()), taken(pod())
    first["spec"]["securityContext"]["runAsUser"] = 1
    assert second["spec"]["securityContext"] == {}


def test_requests_taken_from_limits_are_a_copy() -> None:
    found = taken(pod(container(resources={"limits": {"cpu": "1"}})))
    found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert found["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}


def test_filling_in_twice_changes_nothing() -> None:
    for obj in [*PODS, *WORKLOADS, *OTHERS]:
        once = taken(obj)
        assert taken(once) == once
