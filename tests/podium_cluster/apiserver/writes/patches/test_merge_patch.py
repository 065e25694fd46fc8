"""JSON merge patch: the table of RFC 7386, and its laws."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_cluster.apiserver.writes.patches.json_patch import merge_patch

keys = st.sampled_from(["a", "b", "c"])
leaves = st.integers(0, 3) | st.text(max_size=2)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
documents = st.dictionaries(keys, values, max_size=3)
patches = st.dictionaries(
    keys,
    st.recursive(st.none() | leaves, lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=6),
    max_size=3,
)


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}),
        ({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
    ],
)
def test_the_table_of_the_rfc(before: dict[str, Any], patch: dict[str, Any], after: dict[str, Any]) -> None:
    assert merge_patch(before, patch) == after


@given(documents, patches)
def test_patching_twice_is_patching_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@given(documents, documents)
def test_the_difference_between_two_documents_leads_from_one_to_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert merge_patch(before, difference(before, after)) == after


@given(documents, patches)
def test_neither_argument_is_changed(document: dict[str, Any], patch: dict[str, Any]) -> None:
    kept = copy.deepcopy((document, patch))
    merge_patch(document, patch)
    assert (document, patch) == kept


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        if isinstance(value, dict) and isinstance(before.get(key), dict):
            patch[key] = difference(before[key], value)
        else:
            patch[key] = value
    return patch
