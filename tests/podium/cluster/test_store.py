"""Stores tell their followers of every change, and hold what was found of a pod as long as none comes."""

from __future__ import annotations

from podium.cluster import Store
from podium.cluster.objects import Latest
from podium.kube import Pod
from tools.kit.builders import make_pod


def test_a_follower_hears_what_is_there_and_every_change() -> None:
    store: Store[str] = Store()
    store.set("a", "a1")
    heard: list[tuple[str, str | None, str | None]] = []
    store.follow(lambda key, before, after: heard.append((key, before, after)))
    store.set("a", "a2")
    store.assume("a", "a3")
    store.restore("a")
    store.assume("a", "a4")
    store.set("a", "a5")
    store.discard("a")
    store.restore("a")
    assert heard == [
        ("a", None, "a1"),
        ("a", "a1", "a2"),
        ("a", "a2", "a3"),
        ("a", "a3", "a2"),
        ("a", "a2", "a4"),
        ("a", "a4", "a5"),
        ("a", "a5", None),
    ]


def test_the_version_moves_with_each_change_and_not_without() -> None:
    store: Store[str] = Store()
    versions = [store.version]
    store.set("a", "a1")
    versions.append(store.version)
    store.assume("a", "a2")
    versions.append(store.version)
    store.restore("a")
    versions.append(store.version)
    store.discard("a")
    versions.append(store.version)
    assert len(set(versions)) == len(versions)
    store.restore("a")
    assert store.version == versions[-1]


def test_a_pod_is_asked_about_again_when_another_came_between_or_a_store_changed() -> None:
    asked: list[str] = []

    def find(pod: Pod) -> int:
        asked.append(pod.name)
        return len(asked)

    store: Store[int] = Store()
    latest, one, two = Latest(find, store), make_pod("one"), make_pod("two")
    assert [latest.of(pod) for pod in (one, one, two, two, one)] == [1, 1, 2, 2, 3]
    store.set("a", 1)
    assert (latest.of(one), latest.of(one)) == (4, 4)
    assert asked == ["one", "two", "one", "one"]


def test_another_version_of_the_pod_is_another_pod() -> None:
    latest = Latest(lambda pod: pod.labels)
    assert latest.of(make_pod(labels={"a": "1"})) == {"a": "1"}
    assert latest.of(make_pod(labels={"a": "2"})) == {"a": "2"}
