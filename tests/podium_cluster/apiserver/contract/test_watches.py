"""Watches: from now, from a version, from the beginning; selections entered and left; bookmarks; errors."""

from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import CONFIG_MAPS, PODS, binding, config_map, pod
from tests.podium_cluster.apiserver.contract.session import Session, Watch, seen

Object = dict[str, Any]


def since(api: Session, version: str, count: int, path: str = CONFIG_MAPS, **query: str) -> list[Object]:
    """The next events after a version."""
    with Watch(api, path, {"watch": "true", "resourceVersion": version, "timeoutSeconds": "5", **query}) as watch:
        return watch.collect(count)


def version_of(api: Session, path: str = CONFIG_MAPS) -> str:
    return api.get(path, note=False).version


@contract
def test_a_watch_tells_what_happens_after_a_version(api: Session) -> None:
    start = version_of(api)
    api.create(CONFIG_MAPS, config_map(a="1"), note=False)
    api.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "2"}}, note=False)
    api.delete(f"{CONFIG_MAPS}/c", note=False)
    events = since(api, start, 3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    api.note(events)


@contract
def test_a_watch_without_a_version_begins_with_what_there_is(api: Session) -> None:
    for name in ("a", "b"):
        api.create(CONFIG_MAPS, config_map(name), note=False)
    for version in ("", "0"):
        query = {"watch": "true", "timeoutSeconds": "5", **({"resourceVersion": version} if version else {})}
        with Watch(api, CONFIG_MAPS, query) as watch:
            assert sorted(seen(watch.collect(2))) == [["ADDED", "a"], ["ADDED", "b"]]


@contract
def test_a_watch_of_a_selection_tells_of_objects_that_enter_and_leave_it(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map(), note=False)
    start = version_of(api)
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"labels": {"x": "1"}}}, note=False)
    api.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "1"}}, note=False)
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"labels": {"x": "2"}}}, note=False)
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"labels": {"x": "1"}}}, note=False)
    api.delete(f"{CONFIG_MAPS}/c", note=False)
    events = since(api, start, 5, labelSelector="x=1")
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    api.note(events)


@contract
def test_a_watch_by_field_sees_a_pod_leave_when_it_is_bound(api: Session) -> None:
    start = version_of(api, PODS)
    api.create(PODS, pod(), note=False)
    api.create(f"{PODS}/p/binding", binding("p", "n"), note=False)
    assert seen(since(api, start, 2, PODS, fieldSelector="spec.nodeName=")) == [["ADDED", "p"], ["DELETED", "p"]]
    assert seen(since(api, start, 1, PODS, fieldSelector="spec.nodeName=n")) == [["ADDED", "p"]]


@contract
def test_a_single_object_can_be_watched(api: Session) -> None:
    start = version_of(api)
    for name in ("a", "b"):
        api.create(CONFIG_MAPS, config_map(name), note=False)
    assert seen(since(api, start, 1, fieldSelector="metadata.name=b")) == [["ADDED", "b"]]


@contract
def test_a_watch_ends_after_the_time_it_asks_for(api: Session) -> None:
    assert api.watch(CONFIG_MAPS, seconds=1, resourceVersion=version_of(api)) == []


@contract
def test_a_streamed_list_ends_with_a_bookmark(api: Session) -> None:
    for name in ("a", "b"):
        api.create(CONFIG_MAPS, config_map(name), note=False)
    query = {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "5",
    }
    with Watch(api, CONFIG_MAPS, query) as watch:
        events = watch.collect(3)
    assert sorted(seen(events[:2])) == [["ADDED", "a"], ["ADDED", "b"]]
    bookmark = events[2]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    api.note(bookmark)
    api.get(CONFIG_MAPS, query={"watch": "true", "sendInitialEvents": "true"})
    api.get(CONFIG_MAPS, query={"sendInitialEvents": "true"})
    api.get(CONFIG_MAPS, query={"watch": "true", "resourceVersionMatch": "NotOlderThan"})


@contract
def test_a_watch_from_long_ago_is_gone(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map(), note=False)
    with Watch(api, CONFIG_MAPS, {"watch": "true", "resourceVersion": "1", "timeoutSeconds": "2"}) as watch:
        found = watch.collect(1)[0]
    code = found["object"]["code"] if found.get("type") == "ERROR" else 0
    assert code in (410, 0)  # 410 where version 1 is forgotten; a young server may still know it


@contract
def test_bad_watches_are_refused(api: Session) -> None:
    api.get(CONFIG_MAPS, query={"watch": "true", "resourceVersion": "x"})
    api.get(CONFIG_MAPS, query={"watch": "true", "labelSelector": "x in"})
    api.get(CONFIG_MAPS, query={"watch": "true", "fieldSelector": "spec.nope=1"})
    api.get(PODS, query={"watch": "true", "timeoutSeconds": "x"})


@contract
def test_the_old_form_of_watches_still_works(api: Session) -> None:
    start = version_of(api)
    api.create(CONFIG_MAPS, config_map(), note=False)
    with Watch(
        api, "/api/v1/watch/namespaces/{ns}/configmaps", {"resourceVersion": start, "timeoutSeconds": "5"}
    ) as watch:
        assert seen(watch.collect(1)) == [["ADDED", "c"]]


@contract
def test_watches_can_show_metadata_only(api: Session) -> None:
    start = version_of(api)
    api.create(CONFIG_MAPS, config_map(a="1"), note=False)
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    query = {"watch": "true", "resourceVersion": start, "timeoutSeconds": "5"}
    with Watch(api, CONFIG_MAPS, query, accept=accept) as watch:
        events = watch.collect(1)
    assert events[0]["object"]["kind"] == "PartialObjectMetadata"
    api.note(events)
