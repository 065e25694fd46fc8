"""Custom kinds: what is dropped, filled in and refused, compared with the real API server case by case."""

import copy
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from podium_cluster.apiserver.errors import StatusError, bad_request, invalid
from podium_cluster.apiserver.schema import DecodingError
from podium_cluster.apiserver.schema.custom import CustomKind, custom_kinds
from tests.podium_cluster.apiserver.schema.custom_cases import definition, things
from tools.testbed.apiclient import ApiError
from tools.testbed.cluster import ControlPlane

PATH = "/apis/example.com/v1/namespaces/default/things"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def kind_of(crd: dict[str, Any]) -> CustomKind:
    return next(custom_kinds(crd))


@pytest.fixture
def served(empty_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane that serves Things."""
    client = empty_control_plane.client
    client.request("POST", DEFINITIONS, definition(subresources={"status": {}}))
    for _ in range(100):
        try:
            client.request("GET", PATH)
            break
        except ApiError:
            time.sleep(0.1)
    yield empty_control_plane
    client.request("DELETE", f"{DEFINITIONS}/things.example.com")


def written(kind: CustomKind, raw: bytes) -> tuple[Any, list[str]]:
    """What a create answers with here: the object, or (code, message); and the warnings."""
    obj = msgspec.json.decode(raw)
    try:
        warnings = kind.schema.take(obj, raw)
    except DecodingError as problem:
        return _told(bad_request(f'Thing in version "v1" cannot be handled as a Thing: {problem}')), []
    obj.pop("status", None)  # it has a path of its own
    kind.schema.apply_defaults(obj)
    causes = kind.schema.validate(obj)
    if causes:
        return _told(invalid(kind, obj["metadata"]["name"], causes)), warnings
    return obj["spec"], warnings


def _told(refusal: StatusError) -> tuple[int, str]:
    return refusal.code, refusal.message


def test_objects_are_taken_and_refused_as_by_the_server(served: ControlPlane) -> None:
    kind = kind_of(definition(subresources={"status": {}}))
    for raw in things():
        answer: Any
        try:
            body = served.client.request("POST", PATH, msgspec.Raw(raw), query={"dryRun": "All"})
            answer = msgspec.json.decode(body)["spec"]
        except ApiError as refusal:
            answer = refusal.code, refusal.message
        found = written(kind, raw)[0]
        assert found == answer or found[0] == answer[0] == 422 or "parsing time" in answer[1], raw


def test_strict_requests_are_refused_in_the_servers_words(served: ControlPlane) -> None:
    kind = kind_of(definition())
    for raw in things():
        warnings = written(kind, raw)[1]
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        try:
            served.client.request("POST", PATH, msgspec.Raw(raw), query=query)
            answer = ""
        except ApiError as refusal:
            answer = refusal.message if "strict decoding" in refusal.message else ""
        expected = f'Thing in version "v1" cannot be handled as a Thing: strict decoding error: {", ".join(warnings)}'
        assert answer == (expected if warnings else ""), raw


def test_a_version_that_is_not_served_has_no_kind() -> None:
    crd = definition()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v0", "served": False, "storage": False})
    assert [kind.version for kind in custom_kinds(crd)] == ["v1"]


def test_a_custom_kind_carries_what_its_definition_says() -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    kind = kind_of(definition(additionalPrinterColumns=columns, subresources={"status": {}, "scale": scale}))
    assert (kind.api_version, kind.kind, kind.plural, kind.singular) == ("example.com/v1", "Thing", "things", "thing")
    assert (kind.short_names, kind.categories, kind.namespaced) == (("th",), ("all",), True)
    assert kind.subresources == ("status", "scale")
    assert kind.printer_columns == columns
    assert kind.scale_paths == scale
    assert kind == kind_of(definition(additionalPrinterColumns=columns, subresources={"status": {}, "scale": scale}))
    assert kind != kind_of(definition())


def test_types_of_fields_are_known_to_patches() -> None:
    root = kind_of(definition()).schema.root
    metadata, spec = root.field("metadata"), root.field("spec")
    assert metadata is not None
    assert metadata.name == "ObjectMeta"
    assert spec is not None
    assert spec.form == "struct"
    assert spec.field("nonsense") is None
    forms = {name: field.form for name in ("size", "name", "list", "any", "ios", "dict") if (field := spec.field(name))}
    assert forms == {
        "size": "number",
        "name": "string",
        "list": "list",
        "any": "anything",
        "ios": "scalar",
        "dict": "map",
    }
    by_key, a_set, a_list = spec.field("map"), spec.field("set"), spec.field("list")
    assert by_key is not None
    assert (by_key.keys, by_key.atomic) == (("k",), False)
    assert a_set is not None
    assert (a_set.keys, a_set.atomic) == ((), False)
    assert a_list is not None
    assert a_list.atomic
    partly, embedded = spec.field("partly"), spec.field("emb")
    assert partly is not None
    assert (other := partly.field("other")) is not None
    assert other.form == "anything"
    assert embedded is not None
    assert (inside := embedded.field("metadata")) is not None
    assert inside.name == "ObjectMeta"


def test_defaults_are_not_shared_between_objects() -> None:
    schema = kind_of(definition()).schema
    first: dict[str, Any] = {"spec": {"size": 1}}
    second = copy.deepcopy(first)
    schema.apply_defaults(first)
    schema.apply_defaults(second)
    first["spec"]["sub"]["a"] = 5
    assert second["spec"]["sub"] == {"a": 1}
