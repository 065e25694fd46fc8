"""JSON patch: the RFC's examples, the library's own habits, and the laws of add and remove."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.writes.patches import json_patch

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.text(max_size=3), values, max_size=4)


@pytest.mark.parametrize(
    ("before", "operation", "after"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"a": 1}, {"op": "replace", "path": "/a", "value": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}, "c": 2}, {"op": "move", "from": "/a/b", "path": "/d"}, {"a": {}, "c": 2, "d": 1}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": {"~": 1}}, {"op": "remove", "path": "/a~1b/~0"}, {"a/b": {}}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/-1"}, {"a": [1]}),
        ({"a": 1}, {"op": "replace", "path": "/new", "value": 2}, {"a": 1, "new": 2}),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}),
        ({"a": 1}, {"op": "test", "path": "/absent", "value": None}, {"a": 1}),
        ({"a": 1}, {"op": "add", "path": "ignored/b", "value": 2}, {"a": 1, "b": 2}),
    ],
)
def test_operations_change_the_document(before: Any, operation: dict[str, Any], after: Any) -> None:
    assert json_patch(before, [operation]) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/absent"},
        {"op": "remove", "path": "/list/3"},
        {"op": "remove", "path": "/list/-4"},
        {"op": "add", "path": "/absent/b", "value": 1},
        {"op": "add", "path": "/list/5", "value": 1},
        {"op": "add", "path": "/list/one", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "replace", "path": "/list/3", "value": 1},
        {"op": "replace", "path": "", "value": 1},
        {"op": "test", "path": "/number", "value": True},
        {"op": "test", "path": "/number", "value": 1.0},
        {"op": "test", "path": "/absent", "value": 1},
        {"op": "move", "from": "/absent", "path": "/a"},
        {"op": "copy", "path": "/a"},
        {"op": "add", "value": 1},
        {"op": "unknown", "path": "/a"},
        {},
    ],
)
def test_what_does_not_apply_is_refused_with_one_general_sentence(operation: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as refused:
        json_patch({"number": 1, "list": [1, 2, 3]}, [operation])
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message == "the server rejected our request due to an error in our request"


def test_a_patch_may_hold_ten_thousand_operations_and_no_more() -> None:
    operation = {"op": "test", "path": "/a", "value": 1}
    assert json_patch({"a": 1}, [operation] * 10_000) == {"a": 1}
    with pytest.raises(StatusError) as refused:
        json_patch({"a": 1}, [operation] * 10_001)
    assert refused.value.code == 413
    assert refused.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_copies_may_not_grow_an_object_past_three_mebibytes() -> None:
    document = {"a": "x" * (1 << 20)}
    copies = [{"op": "copy", "from": "/a", "path": f"/b{at}"} for at in range(3)]
    assert len(json_patch(document, copies[:2])) == 3
    with pytest.raises(StatusError):
        json_patch(document, copies)


@given(documents, st.text(max_size=3), values)
def test_what_is_added_can_be_tested_and_removed_again(document: dict[str, Any], key: str, value: Any) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    added = json_patch(document, [{"op": "add", "path": path, "value": value}])
    assert added == {**document, key: value}
    removed = json_patch(added, [{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path}])
    assert removed == {name: inner for name, inner in document.items() if name != key}


@given(documents)
def test_a_failing_patch_leaves_the_document_alone(document: dict[str, Any]) -> None:
    before = dict(document)
    with pytest.raises(StatusError):
        json_patch(document, [{"op": "add", "path": "/new", "value": 1}, {"op": "test", "path": "/new", "value": 2}])
    assert document == before


@pytest.mark.parametrize("index", ["9" * 5000, "-" + "9" * 5000, "²"])
def test_an_index_of_any_length_is_refused_in_the_apis_words(index: str) -> None:
    with pytest.raises(StatusError) as error:
        json_patch({"a": [1, 2]}, [{"op": "add", "path": f"/a/{index}", "value": 1}])
    assert error.value.code == 422
