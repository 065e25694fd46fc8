"""The answer about the pod that was asked about last."""

from __future__ import annotations

from tools.kit.builders import make_pod

from podium.cluster import Store
from podium.kube import Pod
from podium.placement.latest import Latest


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
