"""Mistakes in CustomResourceDefinitions, told in the real API server's words."""

import copy
from typing import Any

import msgspec
import pytest

from podium_cluster.apiserver.errors import invalid
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.schema import DecodingError, schema_of
from podium_cluster.apiserver.schema.definitions import definition_causes, definition_update_causes
from tests.podium_cluster.apiserver.schema.custom_cases import (
    FIELDS,
    ROOTS,
    WRONG_DEFINITIONS,
    Object,
    definition,
    struct,
)
from tools.testbed.apiclient import ApiError
from tools.testbed.cluster import ControlPlane

KIND = built_in("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def changed(path: str, value: Any) -> Object:
    crd = copy.deepcopy(definition(struct(spec={"type": "object"})))
    *steps, last = path.split(".")
    place: Any = crd
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    if value is None:
        place.pop(last)
    else:
        place[last] = value
    return crd


CASES = [
    *(changed(path, value) for path, value in WRONG_DEFINITIONS),
    *(definition(schema) for schema in ROOTS),
    *(definition(struct(spec=field)) for field in FIELDS),
]


def told(crd: Object) -> str:
    taken = copy.deepcopy(crd)
    schema = schema_of(KIND)
    schema.take(taken, msgspec.json.encode(crd))
    schema.apply_defaults(taken)
    causes = definition_causes(taken)
    return invalid(KIND, taken["metadata"]["name"], causes).message if causes else ""


def told_by(control_plane: ControlPlane, crd: Object) -> str:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    try:
        control_plane.client.request("POST", path, crd, query={"dryRun": "All"})
    except ApiError as refusal:
        return refusal.message
    return ""


@pytest.mark.parametrize("crd", CASES, ids=lambda crd: msgspec.json.encode(crd["spec"]).decode()[-60:])
def test_a_definition_is_judged_as_by_the_server(control_plane: ControlPlane, crd: Object) -> None:
    assert told(crd) == told_by(control_plane, crd)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "array", "items": {"type": 5}},
        {"type": "array", "items": [5]},
        {"type": "array", "items": 5},
        {"type": "object", "additionalProperties": 5},
        {"type": "object", "additionalProperties": {"properties": []}},
        {"type": "object", "additionalProperties": None},
        {"type": "object", "additionalProperties": {}},
        {"type": "array", "items": {"type": "string", "unknown": 1}},
    ],
    ids=str,
)
def test_schemas_inside_schemas_are_decoded_as_by_the_server(control_plane: ControlPlane, field: Object) -> None:
    crd = definition(struct(spec=field))
    try:
        answer = told(crd)
    except DecodingError as problem:
        named = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition'
        answer = f"{named}: {problem}"
    assert answer == told_by(control_plane, crd)


def test_two_versions_with_the_same_mistake_are_told_once() -> None:
    crd = definition({"type": "string"})
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False})
    assert told(crd).count("must be object at the root") == 1
    assert "spec.validation.openAPIV3Schema.type" in told(crd)


def test_versions_that_differ_are_told_apart() -> None:
    crd = definition()
    other = {"openAPIV3Schema": {"type": "string"}}
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False, "schema": other})
    assert "spec.versions[1].schema.openAPIV3Schema.type" in told(crd)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec.scope", "Cluster", "spec.scope"),
        ("spec.group", "other.com", "spec.group"),
        ("spec.names.kind", "Other", "spec.names.kind"),
        ("spec.names.plural", "others", "spec.names.plural"),
    ],
)
def test_what_a_kind_is_called_never_changes(path: str, value: str, field: str) -> None:
    old, new = definition(struct(spec={"type": "object"})), changed(path, value)
    for crd in (old, new):
        schema_of(KIND).take(crd)
        schema_of(KIND).apply_defaults(crd)
    causes = definition_update_causes(new, old)
    assert [(cause.field, cause.message) for cause in causes] == [
        (field, f'Invalid value: "{value}": field is immutable')
    ]


def test_a_version_stays_while_objects_may_be_stored_in_it() -> None:
    old = definition()
    schema_of(KIND).take(old)
    schema_of(KIND).apply_defaults(old)
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["name"] = "v2"
    fields = [cause.field for cause in definition_update_causes(new, old)]
    assert fields == ["status.storedVersions[0]", "status.storedVersions"]


def test_a_group_of_kubernetes_needs_an_approval() -> None:
    crd = changed("spec.group", "x.k8s.io")
    crd["metadata"]["name"] = "things.x.k8s.io"
    assert 'protected groups must have approval annotation "api-approved.kubernetes.io"' in told(crd)
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com"}
    assert told(crd) == ""
