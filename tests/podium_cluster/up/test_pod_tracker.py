"""The phases and decisions of pods are counted, and each decision is handed over once."""

import random
from typing import Any

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import POD
from podium_cluster.up.pod_tracker import PodDecision, PodTracker, PodVerdict

REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}


class Cluster:
    def __init__(self) -> None:
        self.api = EmbeddedApi(clock=ManualClock(), rng=random.Random(1))
        self.decisions: list[PodDecision] = []
        self.tracker = PodTracker(self.api.store, lambda: 5.0, self.decisions.append)

    def create(self, name: str) -> None:
        self.api.create(POD, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})

    def status(self, name: str, status: dict[str, Any]) -> None:
        self.api.patch(POD, "default", name, {"status": status}, "application/merge-patch+json", subresource="status")


def test_a_pod_that_gets_a_node_is_a_decision() -> None:
    cluster = Cluster()
    cluster.create("a")
    assert (cluster.tracker.pods, cluster.tracker.undecided, cluster.tracker.first_placed) == (1, 1, None)
    cluster.api.bind("default", "a", {"target": {"kind": "Node", "name": "n"}})
    assert cluster.decisions == [PodDecision("default/a", PodVerdict.PLACED, "n")]
    assert (cluster.tracker.placed, cluster.tracker.undecided, cluster.tracker.first_placed) == (1, 0, 5.0)


def test_a_refusal_is_handed_over_again_only_when_the_reason_changes() -> None:
    cluster = Cluster()
    cluster.create("a")
    for _ in range(2):
        cluster.status("a", {"conditions": [REFUSED]})
    assert cluster.decisions == [PodDecision("default/a", PodVerdict.REFUSED, why="0/1 nodes are available")]
    assert [(each.pod, each.why) for each in cluster.tracker.refused()] == [("default/a", "0/1 nodes are available")]
    cluster.status("a", {"conditions": [{**REFUSED, "message": "0/2 nodes are available"}]})
    assert [each.why for each in cluster.decisions] == ["0/1 nodes are available", "0/2 nodes are available"]
    assert cluster.tracker.undecided == 0


def test_phases_are_counted_as_they_change() -> None:
    cluster = Cluster()
    cluster.create("a")
    cluster.create("b")
    cluster.status("a", {"phase": "Running"})
    assert (cluster.tracker.phases["Pending"], cluster.tracker.phases["Running"]) == (1, 1)
    cluster.api.delete(POD, "default", "a", grace_seconds=0)
    assert (cluster.tracker.phases["Running"], cluster.tracker.pods) == (0, 1)


def test_what_was_there_before_is_counted_but_not_handed_over() -> None:
    cluster = Cluster()
    cluster.create("a")
    cluster.api.bind("default", "a", {"target": {"kind": "Node", "name": "n"}})
    decisions: list[PodDecision] = []
    later = PodTracker(cluster.api.store, lambda: 9.0, decisions.append)
    assert (later.pods, later.placed, decisions) == (1, 0, [])


def test_a_pod_whose_plugin_failed_is_handed_over_and_counts_as_decided() -> None:
    cluster = Cluster()
    cluster.create("a")
    cluster.status("a", {"conditions": [{**REFUSED, "reason": "SchedulerError", "message": "plugin T failed"}]})
    assert cluster.decisions == [PodDecision("default/a", PodVerdict.FAILED, why="plugin T failed")]
    assert (cluster.tracker.undecided, cluster.tracker.refused()) == (0, [])
