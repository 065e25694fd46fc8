"""What happens to pods is counted and told once."""

import random
from typing import Any

from podium.apiserver.api import Api
from podium.apiserver.kinds import POD
from podium.framework.clock import ManualClock
from podium.up.news import Decision, News

REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}


class Cluster:
    def __init__(self) -> None:
        self.api = Api(clock=ManualClock(), rng=random.Random(1))
        self.told: list[Decision] = []
        self.news = News(self.api.store, lambda: 5.0, self.told.append)

    def create(self, name: str) -> None:
        self.api.create(POD, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})

    def status(self, name: str, status: dict[str, Any]) -> None:
        self.api.patch(POD, "default", name, {"status": status}, "application/merge-patch+json", subresource="status")


def test_a_pod_that_gets_a_node_is_a_decision() -> None:
    cluster = Cluster()
    cluster.create("a")
    assert (cluster.news.pods, cluster.news.undecided, cluster.news.first_placed) == (1, 1, None)
    cluster.api.bind("default", "a", {"target": {"kind": "Node", "name": "n"}})
    assert cluster.told == [Decision(5.0, "default/a", "n")]
    assert (cluster.news.placed, cluster.news.undecided, cluster.news.first_placed) == (1, 0, 5.0)


def test_a_refusal_is_told_again_only_when_the_reason_changes() -> None:
    cluster = Cluster()
    cluster.create("a")
    for _ in range(2):
        cluster.status("a", {"conditions": [REFUSED]})
    assert cluster.told == [Decision(5.0, "default/a", "", "0/1 nodes are available")]
    assert [(each.pod, each.why) for each in cluster.news.refused()] == [("default/a", "0/1 nodes are available")]
    cluster.status("a", {"conditions": [{**REFUSED, "message": "0/2 nodes are available"}]})
    assert [each.why for each in cluster.told] == ["0/1 nodes are available", "0/2 nodes are available"]
    assert cluster.news.undecided == 0


def test_phases_are_counted_as_they_change() -> None:
    cluster = Cluster()
    cluster.create("a")
    cluster.create("b")
    cluster.status("a", {"phase": "Running"})
    assert (cluster.news.phases["Pending"], cluster.news.phases["Running"]) == (1, 1)
    cluster.api.delete(POD, "default", "a", grace_seconds=0)
    assert (cluster.news.phases["Running"], cluster.news.pods) == (0, 1)


def test_what_was_there_before_is_counted_but_not_told() -> None:
    cluster = Cluster()
    cluster.create("a")
    cluster.api.bind("default", "a", {"target": {"kind": "Node", "name": "n"}})
    told: list[Decision] = []
    later = News(cluster.api.store, lambda: 9.0, told.append)
    assert (later.pods, later.placed, told) == (1, 0, [])
