"""OpenAPI documents: the types are the real server's, and operations tell what clients look up."""

from typing import Any

import msgspec

from podium_cluster.apiserver.kind import Kinds
from podium_cluster.apiserver.kinds import BUILT_IN
from podium_cluster.apiserver.presentation.openapi import OpenApi
from podium_cluster.apiserver.schema.custom import custom_kinds
from tests.podium_cluster.apiserver.schema.custom_cases import definition
from tools.testbed.cluster import ControlPlane


def document(api: OpenApi, path: str) -> Any:
    answer = api.answer(path)
    assert answer is not None
    return msgspec.json.decode(answer)


def without_texts(value: Any, *, names: bool = False) -> Any:
    """A schema without descriptions, and references written in one of the two ways that are allowed."""
    if isinstance(value, list):
        return [without_texts(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if not names and set(value) == {"$ref"}:
        return value["$ref"]
    dropped = () if names else ("description", "x-kubernetes-unions")
    found = {
        key: without_texts(inner, names=key == "properties" and not names)
        for key, inner in value.items()
        if key not in dropped
    }
    if not names:
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), dict):
                found[key].pop("default", None)
                found[key] = without_texts(found[key])
        if set(found) == {"allOf"}:
            return found["allOf"][0]
    return found


def test_the_types_are_those_of_the_server(control_plane: ControlPlane) -> None:
    api = OpenApi(Kinds(BUILT_IN))
    for place in document(api, "/openapi/v3")["paths"]:
        real = msgspec.json.decode(control_plane.client.request("GET", f"/openapi/v3/{place}"))["components"]["schemas"]
        for name, schema in document(api, f"/openapi/v3/{place}")["components"]["schemas"].items():
            if not name.endswith(("DeleteOptions", "WatchEvent")):  # those name every group there is
                assert without_texts(schema) == without_texts(real[name]), name


def test_the_index_has_an_address_with_a_hash_for_each_group_and_version() -> None:
    paths = document(OpenApi(Kinds(BUILT_IN)), "/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1"} <= set(paths)
    assert paths["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")


def test_patches_say_that_fields_are_validated() -> None:
    paths = document(OpenApi(Kinds(BUILT_IN)), "/openapi/v3/apis/apps/v1")["paths"]
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "kind": "Deployment", "version": "v1"}


def test_every_reference_leads_somewhere() -> None:
    api = OpenApi(Kinds(BUILT_IN))
    for place in document(api, "/openapi/v3")["paths"]:
        text = api.answer(f"/openapi/v3/{place}")
        assert text is not None
        schemas = msgspec.json.decode(text)["components"]["schemas"]
        wanted = {part.split('"')[0] for part in text.decode().split("#/components/schemas/")[1:]}
        assert wanted <= set(schemas)


def test_custom_kinds_come_and_go() -> None:
    kinds = Kinds(BUILT_IN)
    api = OpenApi(kinds)
    before = api.answer("/openapi/v3")
    assert api.answer("/openapi/v3/apis/example.com/v1") is None
    thing = next(custom_kinds(definition()))
    kinds.add(thing)
    found = document(api, "/openapi/v3/apis/example.com/v1")
    schema = found["components"]["schemas"]["com.example.v1.Thing"]
    assert schema["properties"]["spec"]["properties"]["size"] == {"type": "integer", "minimum": 1, "maximum": 10}
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Thing", "version": "v1"}]
    patch = found["paths"]["/apis/example.com/v1/namespaces/{namespace}/things/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    with_things = document(api, "/openapi/v3")["paths"]["apis/example.com/v1"]
    kinds.add(next(custom_kinds(definition({"type": "object"}))))
    assert document(api, "/openapi/v3")["paths"]["apis/example.com/v1"] != with_things
    kinds.remove(thing)
    assert api.answer("/openapi/v3") == before
