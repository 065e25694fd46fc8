"""CSINode objects as columns, whether they come before their node or after."""

from __future__ import annotations

from podium.cluster import Cluster
from podium.cluster.csi_nodes import NO_LIMIT
from tools.kit.builders import make_node
from tools.kit.storage import make_csi_node

EBS = "kubernetes.io/aws-ebs"


def limits(cluster: Cluster, driver: str = "d") -> list[int] | None:
    """The limits of all rows, -1 where there is none."""
    found = cluster.csi_nodes.limits(driver)
    return None if found is None else [-1 if limit == NO_LIMIT else limit for limit in found.tolist()]


def test_a_csi_node_may_come_before_or_after_its_node() -> None:
    cluster = Cluster()
    cluster.objects.csi_nodes.set("n1", make_csi_node("n1", {"d": 3, "open": None}))
    for name in ("n1", "n2", "n3"):
        cluster.set_node(make_node(name))
    cluster.objects.csi_nodes.set("n2", make_csi_node("n2", {"d": 0}, migrated=[EBS, "other"]))
    assert limits(cluster) == [3, 0, -1]
    assert limits(cluster, "open") is None
    assert cluster.csi_nodes.present.tolist() == [True, True, False]
    assert cluster.csi_nodes.limited.tolist() == [True, True, False]
    assert cluster.csi_nodes.migrated.ask(lambda plugins: EBS in plugins, bool).tolist() == [False, True, False]


def test_changes_and_departures_are_followed() -> None:
    cluster = Cluster()
    cluster.set_node(make_node("n1"))
    cluster.objects.csi_nodes.set("n1", make_csi_node("n1", {"d": 3}, migrated=[EBS]))
    cluster.objects.csi_nodes.set("n1", make_csi_node("n1", {"e": 4}))
    assert (limits(cluster), limits(cluster, "e")) == ([-1], [4])
    assert not cluster.csi_nodes.migrated.ask(lambda plugins: EBS in plugins, bool).any()
    cluster.objects.csi_nodes.discard("n1")
    assert (limits(cluster, "e"), cluster.csi_nodes.limited.tolist()) == ([-1], [False])


def test_a_changed_csi_node_is_a_changed_node() -> None:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.set_node(make_node(name))
    cursor = cluster.node_changes.cursor()
    cursor.read()
    cluster.objects.csi_nodes.set("n2", make_csi_node("n2", {"d": 3}))
    cluster.objects.csi_nodes.set("unknown", make_csi_node("unknown", {"d": 3}))
    cluster.objects.csi_nodes.discard("n2")
    assert cursor.read() == [1, 1]


def test_a_node_that_takes_over_a_row_does_not_inherit_limits() -> None:
    cluster = Cluster()
    cluster.objects.csi_nodes.set("n1", make_csi_node("n1", {"d": 3}))
    cluster.set_node(make_node("n1"))
    cluster.remove_node("n1")
    cluster.set_node(make_node("n2"))
    assert limits(cluster) == [-1]
    assert not cluster.csi_nodes.present.any()
    cluster.set_node(make_node("n1"))
    assert limits(cluster) == [-1, 3]
