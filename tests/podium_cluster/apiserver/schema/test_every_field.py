"""Every field of every kind, given a value of the wrong type: what is said about it is what the real server says."""

from collections.abc import Iterator
from typing import Any

import msgspec

from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import BUILT_IN
from podium_cluster.apiserver.schema import DecodingError, FieldType, schema_of
from tools.testbed.apiclient import ApiError
from tools.testbed.cluster import ControlPlane

# A number for what is a string, and so on; lists and structs get a text.
WRONG = {"string": 5, "boolean": 5, "number": True, "scalar": {}}

Place = tuple[str, ...]  # names of fields; "[]" an entry of a list, "{}" a value of a map


def mistakes() -> Iterator[tuple[Kind, dict[str, Any]]]:
    """An object for each field of each type that can be reached, with one wrong value in it."""
    met: set[str] = set()
    for kind in BUILT_IN:
        waiting: list[tuple[FieldType, Place]] = [(schema_of(kind).root, ())]
        while waiting and kind.kind != "Binding":
            type_, place = waiting.pop(0)
            if type_.element is not None:
                waiting.insert(0, (type_.element, (*place, "[]" if type_.form == "list" else "{}")))
            elif type_.struct is not None and type_.struct.type_name not in met:
                met.add(type_.struct.type_name)
                for name, field in type_.struct.fields.items():
                    if place or name not in ("apiVersion", "kind"):
                        yield kind, placed((*place, name), WRONG.get(field.form, "x"))
                        waiting.append((field, (*place, name)))


def placed(place: Place, value: Any) -> dict[str, Any]:
    for step in reversed(place):
        value = [value] if step == "[]" else {"k" if step == "{}" else step: value}
    found: dict[str, Any] = value
    return found


def told(kind: Kind, obj: dict[str, Any]) -> str:
    try:
        schema_of(kind).take(msgspec.json.decode(msgspec.json.encode(obj)))
    except DecodingError as problem:
        return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}'
    return ""


def test_every_field_refuses_a_wrong_type_in_the_servers_words(control_plane: ControlPlane) -> None:
    def told_by_server(case: dict[str, Any]) -> dict[str, Any]:
        kind, obj = case["kind"], case["object"]
        named = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, **obj}
        path = kind.path("default" if kind.namespaced else None)
        try:
            control_plane.client.request("POST", path, named, query={"dryRun": "All"})
        except ApiError as refusal:
            return {**case, "told": refusal.message if "cannot be handled" in refusal.message else ""}
        return {**case, "told": ""}

    # What Jobs say of their PodGroup is alpha: the embedded API keeps it, and checks less of it.
    cases = [{"kind": kind, "object": obj} for kind, obj in mistakes() if "'scheduling': {" not in repr(obj)]
    assert len(cases) > 1500
    for answer in control_plane.client.for_each(told_by_server, cases):
        assert told(answer["kind"], answer["object"]) == answer["told"], answer["object"]
