"""Strategic merge patch: each directive, each complaint, and a plain oracle for merged lists."""

import copy
from typing import Any

import pytest
from hypothesis import given

from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.writes.patches import strategic_merge
from tests.podium_cluster.apiserver.writes.patches.sample_types import SAMPLE, samples

LIVE = {
    "metadata": {"name": "s", "labels": {"a": "x", "b": "y"}, "finalizers": ["f", "g"]},
    "spec": {
        "args": ["one", "two"],
        "selector": {"a": "x"},
        "strategy": {"type": "Rolling", "rolling": {"surge": 1}},
        "parts": [
            {"name": "p", "image": "1", "ports": [{"port": 80, "protocol": "TCP"}]},
            {"name": "q", "image": "2"},
            {"name": "r", "image": "3"},
        ],
    },
}


def patched(patch: dict[str, Any]) -> dict[str, Any]:
    return strategic_merge(LIVE, patch, SAMPLE)


def names(patch: dict[str, Any]) -> list[str]:
    return [part["name"] for part in patched({"spec": patch})["spec"]["parts"]]


def test_a_list_with_a_merge_key_is_merged_entry_by_entry() -> None:
    parts = patched({"spec": {"parts": [{"name": "q", "image": "9"}]}})["spec"]["parts"]
    assert [(part["name"], part["image"]) for part in parts] == [("p", "1"), ("q", "9"), ("r", "3")]


def test_a_list_without_one_is_replaced() -> None:
    assert patched({"spec": {"args": ["three"]}})["spec"]["args"] == ["three"]


def test_a_list_of_scalars_to_be_merged_gains_what_is_new() -> None:
    assert patched({"metadata": {"finalizers": ["g", "h"]}})["metadata"]["finalizers"] == ["f", "g", "h"]


def test_scalars_are_deleted_by_a_list_beside_their_own() -> None:
    found = patched({"metadata": {"$deleteFromPrimitiveList/finalizers": ["f", "other"]}})
    assert found["metadata"]["finalizers"] == ["g"]


def test_null_removes_a_field() -> None:
    assert "selector" not in patched({"spec": {"selector": None}})["spec"]


def test_a_map_can_be_replaced_or_emptied() -> None:
    assert patched({"metadata": {"labels": {"$patch": "replace", "c": "z"}}})["metadata"]["labels"] == {"c": "z"}
    assert patched({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}


def test_an_entry_can_be_deleted() -> None:
    assert names({"parts": [{"$patch": "delete", "name": "q"}]}) == ["p", "r"]


def test_a_merged_list_can_be_replaced() -> None:
    assert names({"parts": [{"$patch": "replace"}, {"name": "new"}]}) == ["new"]


def test_new_entries_take_the_place_the_patch_gives_them() -> None:
    assert names({"parts": [{"name": "new"}, {"name": "q"}]}) == ["new", "p", "q", "r"]


def test_the_order_list_orders_what_it_names_and_leaves_the_rest_where_it_was() -> None:
    order = [{"name": "r"}, {"name": "p"}]
    assert names({"$setElementOrder/parts": order}) == ["q", "r", "p"]
    assert names({"$setElementOrder/parts": [{"name": "new"}, *order], "parts": [{"name": "new"}]}) == [
        "new",
        "q",
        "r",
        "p",
    ]


def test_retain_keys_clears_the_other_fields() -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(patch)["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"spec": {"strategy": {"$retainKeys": ["type"], "rolling": {}}}}, 400, "invalid patch format of retainKeys"),
        ({"metadata": {"$deleteFromPrimitiveList": ["f"]}}, 400, "invalid patch format of primitive list"),
        ({"metadata": {"$setElementOrder": ["f"]}}, 400, "invalid patch format of setElementOrder list"),
        ({"metadata": {"labels": {"$patch": "keep"}}}, 500, 'unknown patch type: "keep" in map: {"$patch":"keep"}'),
        (
            {"spec": {"parts": [{"image": "1"}]}},
            500,
            'map: {"image":"1"} does not contain declared merge key: name',
        ),
        (
            {"spec": {"parts": ["p"]}},
            500,
            'list element types are not identical: [[{"name":"p","image":"1","ports":[{"port":80,"protocol":"TCP"}]}'
            ',{"name":"q","image":"2"},{"name":"r","image":"3"}],["p"]]',
        ),
        (
            {"metadata": {"finalizers": ["h"], "$setElementOrder/finalizers": ["f"]}},
            500,
            'order in patch list doesn\'t match $setElementOrder list: ["h"], ["f"]',
        ),
        ({"metadata": {"finalizers": [["f"]]}}, 500, 'list element types are not identical: [["f","g"],[["f"]]]'),
    ],
)
def test_patches_that_make_no_sense_are_refused(patch: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        patched(patch)
    assert (refused.value.code, refused.value.message) == (code, message)


@given(samples, samples)
def test_without_directives_it_is_what_a_plain_merge_by_name_gives(live: dict[str, Any], patch: dict[str, Any]) -> None:
    kept = copy.deepcopy((live, patch))
    assert unordered(strategic_merge(live, patch, SAMPLE)) == unordered(merged(live, patch))
    assert (live, patch) == kept


@given(samples, samples)
def test_patching_twice_is_patching_once(live: dict[str, Any], patch: dict[str, Any]) -> None:
    once = strategic_merge(live, patch, SAMPLE)
    assert strategic_merge(once, patch, SAMPLE) == once


@given(samples, samples)
def test_entries_of_the_patch_keep_their_order(live: dict[str, Any], patch: dict[str, Any]) -> None:
    wanted = [part["name"] for part in patch.get("spec", {}).get("parts", [])]
    found = [part["name"] for part in strategic_merge(live, patch, SAMPLE).get("spec", {}).get("parts", [])]
    assert [name for name in found if name in wanted] == wanted


def merged(live: Any, patch: Any, field: str = "") -> Any:
    """The oracle: maps by key, `parts` by name, `ports` by number, `finalizers` as a set, anything else replaced."""
    if isinstance(live, dict) and isinstance(patch, dict):
        return {key: merged(live.get(key), patch[key], key) if key in patch else live[key] for key in {**live, **patch}}
    identity = {"parts": "name", "ports": "port"}.get(field)
    if isinstance(live, list) and identity:
        old, new = ({item[identity]: item for item in items} for items in (live, patch))
        return [merged(old.get(key), new[key]) if key in new else old[key] for key in {**old, **new}]
    if isinstance(live, list) and field == "finalizers":
        return [*live, *(item for item in patch if item not in live)]
    return patch


def unordered(value: Any, field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: unordered(inner, key) for key, inner in value.items()}
    if isinstance(value, list) and field != "args":
        return sorted((unordered(item) for item in value), key=str)
    return value
