"""Mistakes in CustomResourceDefinitions: those that are refused, which the real API server refuses as well."""

import copy
from typing import Any

import msgspec
import pytest

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
SCHEMA = "spec.versions[0].schema.openAPIV3Schema"


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
    *((changed(path, value), field) for path, value, field in WRONG_DEFINITIONS),
    *((definition(schema), f"{SCHEMA}.type" if refused else "") for schema, refused in ROOTS),
    *((definition(struct(spec=schema)), field and f"{SCHEMA}.properties[spec]{field}") for schema, field in FIELDS),
]


def taken(crd: Object) -> Object:
    found = copy.deepcopy(crd)
    schema_of(KIND).take(found, msgspec.json.encode(crd))
    schema_of(KIND).apply_defaults(found)
    return found


@pytest.mark.parametrize(("crd", "field"), CASES, ids=lambda case: str(case)[-60:])
def test_a_definition_that_cannot_be_served_is_refused(crd: Object, field: str) -> None:
    found = [cause.field for cause in definition_causes(taken(crd))]
    assert found[:1] == ([field] if field else [])


def test_the_server_refuses_what_is_refused_here(control_plane: ControlPlane) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for crd, field in CASES:
        code = 201
        try:
            control_plane.client.request("POST", path, crd, query={"dryRun": "All"})
        except ApiError as refusal:
            code = refusal.code
        assert code == 422 or not field, crd


@pytest.mark.parametrize("schema", [{"items": {"type": 5}}, {"items": [5]}, {"additionalProperties": 5}])
def test_schemas_inside_schemas_are_decoded(schema: Object) -> None:
    with pytest.raises(DecodingError):
        taken(definition(struct(spec=schema)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.scope", "Cluster"),
        ("spec.group", "other.com"),
        ("spec.names.kind", "Other"),
        ("spec.names.plural", "others"),
    ],
)
def test_what_a_kind_is_called_never_changes(path: str, value: str) -> None:
    causes = definition_update_causes(taken(changed(path, value)), taken(definition(struct(spec={"type": "object"}))))
    assert [(cause.field, cause.message) for cause in causes] == [
        (path, f'Invalid value: "{value}": field is immutable')
    ]
