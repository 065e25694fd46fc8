"""Whatever is sent, the answer is an object or a refusal: nothing in the schema breaks on nonsense."""

import copy
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.schema import DecodingError, schema_of
from podium_cluster.apiserver.schema.custom import custom_kinds
from podium_cluster.apiserver.schema.definitions import definition_causes
from tests.podium_cluster.apiserver.schema.custom_cases import definition
from tests.podium_cluster.apiserver.schema.default_cases import OTHERS, PODS, WORKLOADS
from tools.kit.effort import examples

NONSENSE: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, 10**30, "", "x", "1", [], [None], ["x"], {}, {"x": None}, {"a": {}}]
)


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value, as the steps that lead there."""
    steps = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [place, *(inner for step in steps for inner in places(value[step], (*place, step)))]


def spoilt(value: Any, place: tuple[Any, ...], nonsense: Any) -> Any:
    found = copy.deepcopy(value)
    at = found
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = copy.deepcopy(nonsense)
    return found


@st.composite
def spoilt_objects(draw: st.DrawFn, objects: list[dict[str, Any]]) -> dict[str, Any]:
    obj: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(objects)))
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from(places(obj)[1:]))
        if place not in (("apiVersion",), ("kind",)):
            obj = spoilt(obj, place, draw(NONSENSE))
    return obj


@settings(max_examples=examples(300), deadline=None)
@given(spoilt_objects([*PODS, *WORKLOADS, *OTHERS]))
def test_a_built_in_object_is_taken_or_refused(obj: dict[str, Any]) -> None:
    schema = schema_of(built_in(obj["apiVersion"], obj["kind"]))
    found = copy.deepcopy(obj)
    try:
        schema.take(found, msgspec.json.encode(obj))
    except DecodingError:
        return
    schema.apply_defaults(found)
    again = copy.deepcopy(found)
    assert schema.take(again) == []
    assert again == found


@settings(max_examples=examples(300), deadline=None)
@given(spoilt_objects([definition(), OTHERS[-1]]))
def test_a_definition_is_taken_or_refused(crd: dict[str, Any]) -> None:
    schema = schema_of(built_in("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    try:
        schema.take(crd)
    except DecodingError:
        return
    schema.apply_defaults(crd)
    if not definition_causes(crd):
        for kind in custom_kinds(crd):
            thing = {"metadata": {"name": "a"}, "spec": {"size": 3, "list": ["a"], "map": [{"k": "x"}]}}
            kind.schema.take(thing)
            kind.schema.apply_defaults(thing)
            kind.schema.validate(thing)


THING = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "a", "labels": {"a": "b"}},
    "spec": {
        "size": 3,
        "name": "abc",
        "list": ["a"],
        "set": ["a", "b"],
        "map": [{"k": "x", "v": 1}],
        "any": {"x": {"y": [1]}},
        "partly": {"a": {"b": 1}},
        "ios": 5,
        "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
        "dict": {"a": 1},
        "float": 1.5,
        "sub": {"b": {}},
        "one": {"x": "1"},
        "nolist": [{"q": 1}],
        "date": "2020-01-01T00:00:00Z",
    },
}


@settings(max_examples=examples(300), deadline=None)
@given(spoilt_objects([THING]))
def test_a_custom_object_is_taken_or_refused(thing: dict[str, Any]) -> None:
    schema = next(custom_kinds(definition())).schema
    try:
        schema.take(thing, msgspec.json.encode(thing))
    except DecodingError:
        return
    schema.apply_defaults(thing)
    schema.validate(thing)


def test_a_quantity_beyond_all_bounds_is_the_greatest_there_is() -> None:
    pod: dict[str, Any] = {"spec": {"containers": [], "overhead": {"cpu": "1e999999"}}}
    assert schema_of(built_in("v1", "Pod")).take(pod) == []
    assert pod["spec"]["overhead"] == {"cpu": "9223372036854775807"}
