"""Server-side apply: who owns what after each kind of write, conflicts as the API words them, and what must never
happen.
"""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.writes.patches import server_side_apply, track_update
from podium_cluster.apiserver.writes.patches.managed_fields import decode, from_wire, to_wire
from podium_cluster.apiserver.writes.patches.typed_values import compare, fields_of, merge
from tests.podium_cluster.apiserver.writes.patches.sample_types import SAMPLE, samples

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
Object = dict[str, Any]


def sample(labels: Object | None = None, **spec: Any) -> Object:
    metadata = {"name": "s", **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "Sample", "metadata": metadata, **({"spec": spec} if spec else {})}


def applied(live: Object | None, config: Object, manager: str = "m", *, force: bool = False, **options: Any) -> Object:
    return server_side_apply(live, config, manager=manager, force=force, schema=SAMPLE, now=NOW, **options)


def updated(live: Object, new: Object, manager: str = "u", **options: Any) -> Object:
    return track_update(live, new, manager=manager, schema=SAMPLE, now=NOW, **options)


def owned(obj: Object) -> dict[tuple[str, str], Any]:
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def test_creating_by_apply_owns_what_was_declared() -> None:
    found = applied(None, sample({"a": "x"}, replicas=1, parts=[{"name": "p", "image": "1"}]))
    assert found["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:a": {}}},
                "f:spec": {
                    "f:parts": {'k:{"name":"p"}': {".": {}, "f:image": {}, "f:name": {}}},
                    "f:replicas": {},
                },
            },
        }
    ]


def test_what_was_there_before_the_first_apply_has_an_owner_of_that_name() -> None:
    found = applied(sample({"a": "x"}, replicas=1), sample({"b": "y"}))
    assert found["metadata"]["labels"] == {"a": "x", "b": "y"}
    assert owned(found)["before-first-apply", "Update"] == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:replicas": {}},
    }


def test_a_field_no_longer_declared_is_removed_unless_somebody_else_owns_it() -> None:
    first = applied(None, sample({"a": "x", "b": "y"}))
    second = applied(first, sample({"b": "y"}), "other")
    assert applied(second, sample())["metadata"]["labels"] == {"b": "y"}


def test_an_entry_of_a_list_goes_with_its_last_owner() -> None:
    first = applied(None, sample(parts=[{"name": "p", "image": "1"}, {"name": "q", "image": "2"}]))
    second = applied(first, sample(parts=[{"name": "q", "image": "2"}]))
    assert second["spec"]["parts"] == [{"name": "q", "image": "2"}]


def test_a_default_is_part_of_what_identifies_an_entry() -> None:
    first = applied(None, sample(parts=[{"name": "p", "ports": [{"port": 80}]}]))
    second = applied(first, sample(parts=[{"name": "p", "ports": [{"port": 80, "protocol": "TCP"}]}]), "other")
    assert second["spec"]["parts"] == [{"name": "p", "ports": [{"port": 80, "protocol": "TCP"}]}]


def test_one_conflict_is_told_in_one_line() -> None:
    live = applied(None, sample(replicas=1))
    with pytest.raises(StatusError) as refused:
        applied(live, sample(replicas=2), "other")
    assert refused.value.code == 409
    assert refused.value.reason == "Conflict"
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "m": .spec.replicas'
    assert refused.value.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "m"', "field": ".spec.replicas"}]
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(None, sample(replicas=1, parts=[{"name": "p", "image": "1"}]))
    live = updated(live, {**live, "metadata": {**live["metadata"], "labels": {"a": "x"}}})
    with pytest.raises(StatusError) as refused:
        applied(live, sample({"a": "y"}, replicas=2, parts=[{"name": "p", "image": "2"}]), "other")
    assert refused.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "m":\n- .spec.replicas\n- .spec.parts[name="p"].image\n'
        'conflicts with "u" using v1:\n- .metadata.labels.a'
    )


def test_force_takes_the_field_from_its_owner() -> None:
    live = applied(None, sample({"a": "x"}, replicas=1))
    found = applied(live, sample(replicas=2), "other", force=True)
    assert found["spec"]["replicas"] == 2
    assert owned(found) == {
        ("m", "Apply"): {"f:metadata": {"f:labels": {"f:a": {}}}},
        ("other", "Apply"): {"f:spec": {"f:replicas": {}}},
    }


def test_the_same_value_is_shared() -> None:
    live = applied(applied(None, sample(replicas=1)), sample(replicas=1), "other")
    assert owned(live)["m", "Apply"] == owned(live)["other", "Apply"]


def test_an_update_takes_what_it_changes() -> None:
    live = applied(None, sample({"a": "x"}, replicas=1))
    found = updated(live, {**live, "spec": {"replicas": 3}})
    assert owned(found) == {
        ("m", "Apply"): {"f:metadata": {"f:labels": {"f:a": {}}}},
        ("u", "Update"): {"f:spec": {"f:replicas": {}}},
    }


def test_an_object_never_applied_carries_no_managed_fields() -> None:
    assert "managedFields" not in updated(sample(replicas=1), sample(replicas=2))["metadata"]


def test_an_empty_list_of_managed_fields_in_an_update_resets_them() -> None:
    live = applied(None, sample(replicas=1))
    reset = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    assert "managedFields" not in updated(live, reset)["metadata"]


def test_an_update_that_leaves_managed_fields_out_keeps_them() -> None:
    live = applied(None, sample(replicas=1))
    assert owned(updated(live, sample(replicas=1))) == owned(live)


def test_what_an_endpoint_resets_is_not_owned_through_it() -> None:
    config = {**sample(replicas=1), "status": {"ready": 1}}
    assert owned(applied(None, config, reset=("status",))) == {("m", "Apply"): {"f:spec": {"f:replicas": {}}}}
    found = applied(sample(replicas=1), config, subresource="status", reset=("spec",))
    entry = found["metadata"]["managedFields"][0]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:ready": {}}})


def test_eleven_updaters_become_ten_and_the_oldest_share_an_entry() -> None:
    live = applied(None, sample(replicas=0))
    for at in range(12):
        metadata = {**live["metadata"], "labels": {**live["metadata"].get("labels", {}), f"l{at}": "x"}}
        live = updated(live, {**live, "metadata": metadata}, f"u{at:02}")
    names = {entry["manager"] for entry in live["metadata"]["managedFields"]}
    assert len(names) == 11
    assert {"ancient-changes", "m"} <= names


def test_kubectl_takes_over_what_its_client_side_apply_wrote() -> None:
    annotation = '{"apiVersion":"v1","kind":"Sample","metadata":{"name":"s"},"spec":{"replicas":1}}'
    live = sample(replicas=1)
    live["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": annotation}
    found = applied(live, sample(replicas=2), "kubectl")
    assert found["spec"]["replicas"] == 2
    assert found["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] == (
        '{"apiVersion":"v1","kind":"Sample","metadata":{"name":"s"},"spec":{"replicas":2}}\n'
    )
    with pytest.raises(StatusError):
        applied(live, sample(replicas=2), "somebody")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({**sample(), "extra": 1}, ".extra: field not declared in schema"),
        (sample(replicas="1"), '.spec.replicas: expected number, got "1"'),
        (sample(parts={}), ".spec.parts: expected list, got {}"),
        (sample({"a": 1}), ".metadata.labels.a: expected string, got 1"),
        (
            sample(parts=[{"name": "p"}, {"name": "p"}]),
            '.spec.parts: duplicate entries for key [name="p"]',
        ),
        (
            sample(parts=[{"image": "1"}]),
            ".spec.parts: element 0: associative list with keys has an element that omits all key fields"
            ' ["name"] (and doesn\'t have default values for any key fields)',
        ),
    ],
)
def test_a_configuration_that_does_not_fit_the_schema_is_refused(config: Object, told: str) -> None:
    with pytest.raises(StatusError) as refused:
        applied(None, config)
    assert refused.value.code == 500
    assert refused.value.message == f"failed to create typed patch object (/s; /v1, Kind=Sample): {told}"


def test_managed_fields_may_not_be_applied() -> None:
    config = sample()
    config["metadata"]["managedFields"] = []
    with pytest.raises(StatusError, match="must be nil") as refused:
        applied(None, config)
    assert (refused.value.code, refused.value.message) == (400, "metadata.managedFields must be nil")


@given(samples)
def test_applying_again_changes_nothing(config: Object) -> None:
    once = applied(None, config)
    assert applied(once, config) == once


@given(samples, samples)
def test_what_is_applied_is_there_afterwards(first: Object, second: Object) -> None:
    found = applied(applied(None, first, "one"), second, "two", force=True)
    assert merge(found, second, SAMPLE) == found


@given(samples, samples, samples)
def test_two_managers_never_lose_each_others_fields(first: Object, second: Object, third: Object) -> None:
    """Whatever the other applies without force, each manager's own configuration stays true until it changes it."""
    live = applied(None, first, "one")
    for manager, config in (("two", second), ("two", third)):
        try:
            live = applied(live, config, manager)
        except StatusError as refused:
            assert refused.code == 409
        assert fields_of(first, SAMPLE) <= fields_of(live, SAMPLE)
        assert not any(compare(live, merge(live, first, SAMPLE), SAMPLE))


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), samples), min_size=1, max_size=4))
def test_every_owned_field_exists_and_every_field_of_an_applied_object_is_owned(writes: list[Any]) -> None:
    live: Object | None = None
    for manager, config in writes:
        live = applied(live, config, manager, force=True)
    assert live is not None
    bare = {**live, "metadata": {key: value for key, value in live["metadata"].items() if key != "managedFields"}}
    there = fields_of(bare, SAMPLE)
    owned_paths = frozenset().union(*(entry.fields for entry in decode(live["metadata"].get("managedFields")).values()))
    assert owned_paths <= there
    never = {("f:apiVersion",), ("f:kind",), ("f:metadata", "f:name")}
    assert there - never <= owned_paths


@given(samples)
def test_field_sets_survive_the_wire(obj: Object) -> None:
    paths = fields_of(obj, SAMPLE)
    assert from_wire(to_wire(paths)) == paths
