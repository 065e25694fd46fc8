"""Disks that pods mount themselves, and who conflicts over them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.cluster.attached import inline_disks
from tools.kit.builders import make_node
from tools.kit.storage import pod_with


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name: str, read_only: bool = False, portal: str = "p") -> dict[str, Any]:
    return {"iscsi": {"iqn": name, "targetPortal": portal, "readOnly": read_only}}


def rbd(monitors: str, read_only: bool = False, pool: str = "pool", image: str = "image") -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "pool": pool, "image": image, "readOnly": read_only}}


CASES = [
    (gce("a"), gce("a"), True),
    (gce("a"), gce("b"), False),
    (gce("a", True), gce("a"), True),
    (gce("a", True), gce("a", True), False),
    (ebs("a"), ebs("a"), True),
    (ebs("a", True), ebs("a", True), True),
    (ebs("a"), ebs("b"), False),
    (iscsi("a"), iscsi("a", portal="q"), True),
    (iscsi("a", True), iscsi("a", True), False),
    (iscsi("a"), iscsi("b"), False),
    (rbd("ab"), rbd("bc"), True),
    (rbd("ab"), rbd("cd"), False),
    (rbd("a"), rbd("a", pool="other"), False),
    (rbd("a"), rbd("a", image="other"), False),
    (rbd("aa", True), rbd("ab", True), False),
    (rbd("a", True), rbd("a"), True),
    (gce("a"), ebs("a"), False),
]


@pytest.mark.parametrize(("wanted", "mounted", "conflict"), CASES)
def test_conflicts_over_disks(wanted: dict[str, Any], mounted: dict[str, Any], conflict: bool) -> None:
    cluster = Cluster()
    cluster.set_node(make_node("n1"))
    holder = pod_with({"name": "v", **mounted}, name="holder", node="n1")
    disks = inline_disks(pod_with({"name": "v", **wanted}))
    assert any(one.conflicts_with(other) for one in disks for other in inline_disks(holder)) is conflict
    cluster.set_pod(holder)
    assert bool(cluster.disks.conflicting_rows(disks)) is conflict
    cluster.remove_pod(holder.uid)
    assert not cluster.disks.conflicting_rows(disks)


DISKS = st.sampled_from([gce("a"), gce("a", True), ebs("a"), iscsi("a", True), rbd("ab"), rbd("b", True), rbd("")])


@given(st.lists(st.tuples(st.lists(DISKS, max_size=2), st.sampled_from(["n1", "n2"])), max_size=6), st.lists(DISKS))
def test_rows_in_conflict_are_those_with_a_conflicting_pod(
    placed: list[tuple[list[dict[str, Any]], str]], wanted: list[dict[str, Any]]
) -> None:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.set_node(make_node(name))
    disks = inline_disks(pod_with(*({"name": f"v{i}", **disk} for i, disk in enumerate(wanted))))
    expected = set()
    for number, (sources, node) in enumerate(placed):
        pod = pod_with(*({"name": f"v{i}", **s} for i, s in enumerate(sources)), name=f"p{number}", node=node)
        cluster.set_pod(pod)
        if any(one.conflicts_with(other) for one in disks for other in inline_disks(pod)):
            expected.add(cluster.row_of[node])
    assert cluster.disks.conflicting_rows(disks) == expected
