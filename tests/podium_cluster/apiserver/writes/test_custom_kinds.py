"""Definitions in a cluster: their kinds are served, their objects validated, and all goes with them."""

import copy
import random
from typing import Any

import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.write_context import WriteOptions
from podium_cluster.apiserver.writes.create import create
from podium_cluster.apiserver.writes.custom_kinds import DEFINITION, FINALIZER
from tests.podium_cluster.apiserver.schema.custom_cases import definition, struct

SIMPLE = struct(spec=struct(size={"type": "integer", "default": 1}), status=struct(phase={"type": "string"}))
MERGE = "application/merge-patch+json"


def new_api() -> EmbeddedApi:
    return EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1))


def crd(schema: dict[str, Any] = SIMPLE, **version: Any) -> dict[str, Any]:
    return definition(schema, subresources={"status": {}}, **version)


def thing_kind(api: EmbeddedApi, version: str = "v1") -> Kind:
    found = api.kinds.by_kind(f"example.com/{version}", "Thing")
    assert found is not None
    return found


def thing(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def conditions(api: EmbeddedApi, name: str = "things.example.com") -> dict[str, tuple[str, str]]:
    status = api.get(DEFINITION, "", name)["status"]
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_a_definition_is_established_when_it_is_stored() -> None:
    api = new_api()
    api.create(DEFINITION, crd())
    assert conditions(api) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    stored = api.get(DEFINITION, "", "things.example.com")
    assert stored["status"]["acceptedNames"] == stored["spec"]["names"]
    assert stored["status"]["storedVersions"] == ["v1"]
    assert stored["spec"]["names"]["listKind"] == "ThingList"
    assert api.create(thing_kind(api), thing())["spec"] == {"size": 1}


def test_objects_are_validated_when_written() -> None:
    api = new_api()
    api.create(DEFINITION, crd())
    with pytest.raises(StatusError) as refusal:
        api.create(thing_kind(api), thing(size="x"))
    assert (refusal.value.code, refusal.value.message) == (
        422,
        'Thing.example.com "a" is invalid: spec.size: Invalid value: "string": '
        'spec.size in body must be of type integer: "string"',
    )
    api.create(thing_kind(api), thing(size=2))
    with pytest.raises(StatusError):
        api.patch(thing_kind(api), "default", "a", {"spec": {"size": True}}, MERGE)
    assert api.patch(thing_kind(api), "default", "a", {"spec": {"size": 3}}, MERGE)["spec"] == {"size": 3}


def test_the_status_is_written_through_its_own_path_and_counts_no_generation() -> None:
    api = new_api()
    api.create(DEFINITION, crd())
    made = api.create(thing_kind(api), thing() | {"status": {"phase": "x"}})
    assert "status" not in made
    written = api.update(thing_kind(api), made | {"status": {"phase": "Ready"}}, subresource="status")
    assert (written["status"], written["metadata"]["generation"]) == ({"phase": "Ready"}, 1)
    with pytest.raises(StatusError):
        api.update(thing_kind(api), written | {"status": {"phase": 5}}, subresource="status")


def test_unknown_fields_warn_or_refuse_as_the_request_asks() -> None:
    api = new_api()
    api.create(DEFINITION, crd())
    options = WriteOptions()
    create(api.context, thing_kind(api), thing(foo=1), "default", options)
    assert options.warnings == ['unknown field "spec.foo"']
    with pytest.raises(StatusError, match="strict decoding error"):
        api.create(thing_kind(api), thing("b", foo=1), field_validation="Strict")
    with pytest.raises(StatusError) as refusal:
        api.patch(thing_kind(api), "default", "a", {"spec": {"foo": 1}}, MERGE, field_validation="Strict")
    assert refusal.value.code == 422
    assert refusal.value.message.endswith('strict decoding error: unknown field "spec.foo"')


def test_versions_are_one_object_and_a_changed_schema_holds_at_once() -> None:
    api = new_api()
    both = crd()
    both["spec"]["versions"].append({**both["spec"]["versions"][0], "name": "v2", "storage": False})
    api.create(DEFINITION, both)
    api.create(thing_kind(api, "v1"), thing(size=5))
    seen = api.get(thing_kind(api, "v2"), "default", "a")
    assert (seen["apiVersion"], seen["spec"]) == ("example.com/v2", {"size": 5})
    current = api.get(DEFINITION, "", "things.example.com")
    current["spec"]["versions"] = copy.deepcopy(current["spec"]["versions"][:1])
    current["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = struct(spec=struct(color={"type": "string"}))
    api.update(DEFINITION, current)
    assert api.kinds.by_kind("example.com/v2", "Thing") is None
    assert api.create(thing_kind(api), thing("b", color="x", size=1))["spec"] == {"color": "x"}


def test_what_was_wrong_before_the_schema_changed_may_stay() -> None:
    api = new_api()
    api.create(DEFINITION, crd())
    api.create(thing_kind(api), thing(size=5))
    current = api.get(DEFINITION, "", "things.example.com")
    schema = current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] = {
        "size": {"type": "integer", "maximum": 3},
        "color": {"type": "string"},
    }
    api.update(DEFINITION, current)
    assert api.patch(thing_kind(api), "default", "a", {"spec": {"color": "red"}}, MERGE)["spec"]["size"] == 5
    with pytest.raises(StatusError, match="should be less than or equal to 3"):
        api.patch(thing_kind(api), "default", "a", {"spec": {"size": 6}}, MERGE)


def test_names_that_another_definition_has_are_not_accepted() -> None:
    api = new_api()
    api.create(DEFINITION, crd())
    other = crd()
    other["metadata"]["name"] = "others.example.com"
    other["spec"]["names"] |= {"plural": "others"}
    api.create(DEFINITION, other)
    assert conditions(api, "others.example.com") == {
        "NamesAccepted": ("False", "SingularConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert api.kinds.by_path("example.com", "v1", "others") is None


def test_deleting_a_definition_deletes_its_objects_and_its_kinds() -> None:
    api = new_api()
    api.create(DEFINITION, crd())
    kind = thing_kind(api)
    api.create(kind, thing("a"))
    api.create(kind, thing("b"))
    api.delete(DEFINITION, "", "things.example.com")
    assert api.store.items(kind) == []
    assert api.kinds.by_kind("example.com/v1", "Thing") is None
    assert api.store.get(DEFINITION, "", "things.example.com") is None
    api.create(DEFINITION, crd())
    assert api.list(thing_kind(api)) == []


def test_a_definition_waits_for_objects_with_finalizers() -> None:
    api = new_api()
    api.create(DEFINITION, crd())
    kind = thing_kind(api)
    held = thing("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(kind, held)
    api.delete(DEFINITION, "", "things.example.com")
    assert conditions(api)["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert api.get(DEFINITION, "", "things.example.com")["metadata"]["finalizers"] == [FINALIZER]
    api.patch(kind, "default", "a", {"metadata": {"finalizers": None}}, MERGE)
    assert api.store.get(DEFINITION, "", "things.example.com") is None
    assert api.kinds.by_kind("example.com/v1", "Thing") is None


def test_a_wrong_definition_is_refused_and_serves_nothing() -> None:
    api = new_api()
    with pytest.raises(StatusError) as refusal:
        api.create(DEFINITION, crd({"type": "string"}))
    assert refusal.value.code == 422
    assert api.kinds.by_kind("example.com/v1", "Thing") is None


def test_objects_are_refused_by_the_rules_of_their_definition() -> None:
    api = new_api()
    size = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "may only grow"}]}
    rules = [{"rule": "self.size < 10", "fieldPath": ".size"}]
    api.create(DEFINITION, crd(struct(spec={**struct(size=size), "x-kubernetes-validations": rules})))
    kind = api.kinds.by_kind("example.com/v1", "Thing")
    assert kind is not None
    with pytest.raises(StatusError, match=r"spec.size: Invalid value: failed rule: self.size < 10"):
        api.create(kind, thing(size=10))
    created = api.create(kind, thing(size=5))
    with pytest.raises(StatusError, match=r"spec.size: Invalid value: 4: may only grow"):
        api.update(kind, {**created, "spec": {"size": 4}})


def test_a_definition_whose_rule_does_not_compile_is_refused() -> None:
    rules = [{"rule": "self.size < 10"}]
    with pytest.raises(StatusError, match=r"x-kubernetes-validations\[0\].rule: .*undefined field 'size'"):
        new_api().create(DEFINITION, crd(struct(spec={"type": "object", "x-kubernetes-validations": rules})))


def test_built_in_objects_are_checked_and_completed_when_written() -> None:
    api = new_api()
    made = api.create(
        built_in("v1", "Pod"), {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    assert made["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    with pytest.raises(StatusError) as refusal:
        api.create(built_in("v1", "Pod"), {"metadata": {"name": "q"}, "spec": {"containers": {}}})
    assert (refusal.value.code, refusal.value.reason) == (400, "BadRequest")
    assert refusal.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: '
        "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"
    )
