"""Stores tell their followers of every change, assumptions included."""

from __future__ import annotations

from podium.cluster import Store


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
