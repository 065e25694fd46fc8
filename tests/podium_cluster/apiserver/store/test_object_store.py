"""The store: one counter, a bounded history, and the past as long as it is remembered."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_cluster.apiserver.errors import StorageError
from podium_cluster.apiserver.kinds import NODE, POD, built_in
from podium_cluster.apiserver.store.collection import ForgottenError, ObjectChange
from podium_cluster.apiserver.store.object_store import ObjectStore

CONFIG_MAP = built_in("v1", "ConfigMap")


def obj(name: str, namespace: str = "default", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **fields}


def test_every_write_takes_the_next_revision_whatever_its_kind() -> None:
    store = ObjectStore()
    first = store.put(CONFIG_MAP, obj("a"))
    second = store.put(NODE, {"metadata": {"name": "n"}})
    gone = store.remove(CONFIG_MAP, "default", "a")
    assert (first.revision, second.revision, gone.revision) == (2, 3, 4)
    assert gone.decode()["metadata"]["resourceVersion"] == "4"


def test_what_is_stored_begins_with_its_kind() -> None:
    stored = ObjectStore().put(CONFIG_MAP, {"data": {"k": "v"}, **obj("a")})
    assert stored.raw.startswith(b'{"kind":"ConfigMap","apiVersion":"v1",')
    assert stored.raw.startswith(CONFIG_MAP.head)


def test_objects_are_listed_in_the_order_of_their_keys() -> None:
    store = ObjectStore()
    for namespace, name in (("b", "x"), ("a", "z"), ("a-b", "y"), ("a", "c")):
        store.put(CONFIG_MAP, obj(name, namespace))
    found = [(item.namespace, item.name) for item in store.items(CONFIG_MAP)]
    assert found == [("a-b", "y"), ("a", "c"), ("a", "z"), ("b", "x")]
    assert [item.name for item in store.items(CONFIG_MAP, "a")] == ["c", "z"]


def test_a_listener_that_writes_hears_of_it_after_everybody_has_heard_of_the_first() -> None:
    store = ObjectStore()
    heard: list[str] = []

    def writer(change: ObjectChange) -> None:
        heard.append(f"writer {change.new.name}")
        if change.new.name == "a":
            store.put(CONFIG_MAP, obj("b"))

    store.listen(writer)
    store.listen(lambda change: heard.append(f"other {change.new.name}"))
    store.put(CONFIG_MAP, obj("a"))
    assert heard == ["writer a", "other a", "writer b", "other b"]


def test_a_listener_whose_own_write_fails_keeps_nothing_from_the_others() -> None:
    store = ObjectStore()
    heard: list[str] = []

    def fail(change: ObjectChange) -> None:
        raise StorageError("the disk is full")

    store.listen(fail)
    store.listen(lambda change: heard.append(change.new.name))
    with pytest.raises(StorageError):
        store.put(CONFIG_MAP, obj("a"))
    assert heard == ["a"]


def test_a_listener_of_one_kind_hears_only_of_it_until_it_stops() -> None:
    store = ObjectStore()
    heard: list[str] = []
    stop = store.listen(lambda change: heard.append(change.new.name), POD)
    store.put(CONFIG_MAP, obj("a"))
    store.put(POD, obj("p"))
    stop()
    store.put(POD, obj("q"))
    assert heard == ["p"]


def test_history_is_bounded_and_says_what_it_has_forgotten() -> None:
    store = ObjectStore(history=8)
    for number in range(100):
        store.put(CONFIG_MAP, obj("a", data={"n": str(number)}))
    with pytest.raises(ForgottenError) as error:
        store.changes_since(CONFIG_MAP, 50)
    remembered = store.changes_since(CONFIG_MAP, error.value.oldest)
    assert 8 <= len(remembered) <= 9
    with pytest.raises(ForgottenError):
        store.at(CONFIG_MAP, error.value.oldest - 1)


def test_forgetting_does_not_concern_who_has_missed_nothing() -> None:
    store = ObjectStore()
    last = store.put(CONFIG_MAP, obj("a")).revision
    store.forget()
    assert store.changes_since(CONFIG_MAP, last) == []
    with pytest.raises(ForgottenError):
        store.changes_since(CONFIG_MAP, last - 1)


def test_a_loaded_store_goes_on_where_it_was_and_knows_no_past() -> None:
    before = ObjectStore()
    for name in "abc":
        before.put(CONFIG_MAP, obj(name))
    after = ObjectStore()
    after.load(before.revision, [(item.kind, item.raw) for item in before.items(CONFIG_MAP)])
    assert after.items(CONFIG_MAP) == before.items(CONFIG_MAP)
    assert after.put(CONFIG_MAP, obj("d")).revision == before.revision + 1
    with pytest.raises(ForgottenError):
        after.changes_since(CONFIG_MAP, 2)
    with pytest.raises(ForgottenError):
        after.changes_since(NODE, 2)


WRITES = st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("abcd"), st.booleans()), max_size=40)


@given(WRITES)
def test_the_store_at_any_revision_is_what_it_was_then(writes: list[tuple[str, str, bool]]) -> None:
    store = ObjectStore()
    moments = {store.revision: store.items(CONFIG_MAP)}
    for namespace, name, present in writes:
        if present:
            store.put(CONFIG_MAP, obj(name, namespace, data={"r": str(store.revision)}))
        elif store.get(CONFIG_MAP, namespace, name) is not None:
            store.remove(CONFIG_MAP, namespace, name)
        moments[store.revision] = store.items(CONFIG_MAP)
    for revision, then in moments.items():
        assert store.at(CONFIG_MAP, revision) == then


def test_history_is_bounded_in_bytes_over_all_collections() -> None:
    store = ObjectStore(history_bytes=1_000_000)
    first = store.put(POD, obj("p")).revision
    for number in range(300):
        store.put(CONFIG_MAP, obj("large", data={"k": "x" * 10_000, "n": str(number)}))
    with pytest.raises(ForgottenError):
        store.changes_since(CONFIG_MAP, first)
    held = store.changes_since(CONFIG_MAP, store.revision - 50)
    assert len(held) == 50, "the newest are still there"
    assert store.changes_since(POD, first - 1), "and so is what is small"


def test_what_is_forgotten_is_not_held_by_a_list_of_the_past() -> None:
    store = ObjectStore(history_bytes=100_000)
    past = store.put(CONFIG_MAP, obj("large", data={"k": "x" * 10_000})).revision
    store.put(CONFIG_MAP, obj("large", data={"k": "y" * 10_000}))
    assert store.at(CONFIG_MAP, past)
    for number in range(20):
        store.put(CONFIG_MAP, obj("large", data={"k": "z" * 10_000, "n": str(number)}))
    with pytest.raises(ForgottenError):
        store.at(CONFIG_MAP, past)


def test_a_listener_may_be_stopped_more_than_once() -> None:
    store = ObjectStore()
    heard: list[ObjectChange] = []
    stop, other = store.listen(heard.append, CONFIG_MAP), store.listen(heard.append, CONFIG_MAP)
    stop()
    stop()
    store.put(CONFIG_MAP, obj("a"))
    assert len(heard) == 1
    other()
