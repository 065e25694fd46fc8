"""Whatever is done to the cluster state can be undone exactly, and a state kept up to date equals one built afresh."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster, PlacedPod, PodQuery, QueryTerm
from podium.kube import Node, Pod
from podium.kube.selector import EVERYTHING, Requirement, Selector
from tools.kit.builders import make_node, make_pod
from tools.kit.effort import examples

NAMES = ["n1", "n2", "n3", "n4"]
ZONE = "topology.kubernetes.io/zone"
QUERIES = [
    PodQuery((QueryTerm(frozenset({"default"}), Selector((Requirement("app", "In", ("a",)),))),)),
    PodQuery((QueryTerm(None, Selector((Requirement("app", "NotIn", ("a", "b")),))),), terminating=False),
    PodQuery((QueryTerm(None, EVERYTHING),)),
]


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    zone = draw(st.sampled_from(["", "z1", "z2"]))
    return make_node(
        draw(st.sampled_from(NAMES)),
        cpu=draw(st.integers(0, 8)),
        labels={ZONE: zone} if zone else {},
        taints=draw(st.sampled_from([(), ({"key": "k", "effect": "NoSchedule"},)])),
        allocatable=draw(st.sampled_from([{}, {"example.com/gpu": 2}])),
        images=draw(st.sampled_from([{}, {"app:1": 100}, {"app:1": 200, "db:1": 5}])),
    )


def anti_affinity(app: str) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    number = draw(st.integers(0, 5))
    port = draw(st.sampled_from([0, 80, 81]))
    requests = draw(st.sampled_from([{}, {"cpu": "100m", "memory": "1Gi"}, {"example.com/gpu": 1}]))
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "ports": [{"hostPort": port}], "resources": {"requests": requests}}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": draw(st.sampled_from(["one", "two"]))}}],
    }
    if draw(st.booleans()):
        spec["affinity"] = anti_affinity(draw(st.sampled_from(["a", "b"])))
    return make_pod(
        f"p{number}",
        namespace=draw(st.sampled_from(["default", "other"])),
        labels=draw(st.sampled_from([{}, {"app": "a"}, {"app": "b", "x": "y"}])),
        node=draw(st.sampled_from(NAMES)),
        metadata=draw(st.sampled_from([{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])),
        spec=spec,
    )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("node"), nodes()),
        st.tuples(st.just("no node"), st.sampled_from(NAMES)),
        st.tuples(st.just("pod"), pods()),
        st.tuples(st.just("no pod"), pods()),
    ),
    max_size=25,
)


def apply(cluster: Cluster, step: tuple[str, Any]) -> None:
    what, thing = step
    if what == "node":
        cluster.set_node(thing)
    elif what == "no node":
        if thing in cluster.row_of and cluster.nodes[cluster.row_of[thing]] is not None:
            cluster.remove_node(thing)
    elif what == "pod":
        cluster.set_pod(thing)
    elif thing.uid in cluster.pods:
        cluster.remove_pod(thing.uid)


RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")


def contents(cluster: Cluster) -> dict[str, Any]:
    """Everything the state says, by name instead of by row."""
    resources = cluster.resources
    per_node = {}
    for name, row in cluster.row_of.items():
        per_node[name] = {
            "present": bool(cluster.present[row]),
            "allocatable": {each: int(resources.allocatable_of(each)[row]) for each in RESOURCES},
            "requested": {each: int(resources.requested_of(each)[row]) for each in RESOURCES},
            "nonzero": resources.nonzero[:, row].tolist(),
            "pods": sorted(cluster.pods_on[row]),
            "count": int(resources.pod_count[row]),
            "allowed": int(resources.allowed_pods[row]),
            "taints": cluster.taints.values[int(cluster.taints.numbers[row])],
            "zone": cluster.labels.column(ZONE).values[int(cluster.labels.column(ZONE).ids[row])],
            "counts": [int(cluster.counts.column(query).per_row[row]) for query in QUERIES],
            "terms": sorted(
                (group.term.selector.requirements, int(group.per_row[row]))
                for group in cluster.terms.matching("default", {}, {"app": "a"})
                if group.per_row[row]
            ),
            "port 80": row in cluster.ports.conflicting_rows(make_pod_port(80)),
        }
    claims = {
        claim: {cluster.names[row]: count for row, count in rows.items()} for claim, rows in cluster.claim_rows.items()
    }
    used = {
        r for node in per_node.values() for kind in ("allocatable", "requested") for r, v in node[kind].items() if v
    }
    for node in per_node.values():
        for kind in ("allocatable", "requested"):
            node[kind] = {r: v for r, v in node[kind].items() if r in used}
    return {"nodes": per_node, "claims": claims, "pods": sorted(cluster.pods)}


def make_pod_port(port: int) -> Any:
    from podium.cluster import HostPort

    return [HostPort("0.0.0.0", "TCP", port)]


@settings(max_examples=examples(150), deadline=None)
@given(steps, steps)
def test_a_state_kept_up_to_date_equals_one_built_afresh(first: list[Any], second: list[Any]) -> None:
    kept = Cluster()
    for step in first:
        apply(kept, step)
    contents(kept)  # asks every question once, so that from here on the answers are kept
    for step in second:
        apply(kept, step)
    fresh = Cluster()
    for row in kept.order.rows.tolist():
        node = kept.nodes[row]
        assert node is not None
        fresh.set_node(node)
    for placed in kept.pods.values():
        fresh.set_pod(placed.pod)
    assert contents(kept) == contents(fresh)


@settings(max_examples=examples(150), deadline=None)
@given(steps, st.lists(pods(), max_size=5, unique_by=lambda pod: pod.uid))
def test_forgetting_undoes_assuming_exactly(first: list[Any], assumed: list[Pod]) -> None:
    cluster = Cluster()
    for step in first:
        apply(cluster, step)
    before = contents(cluster)
    fresh = [pod for pod in assumed if pod.uid not in cluster.pods]
    for pod in fresh:
        cluster.assume(pod, pod.node_name)
    for pod in fresh:
        cluster.forget(pod.uid)
    assert contents(cluster) == before


@settings(max_examples=examples(100), deadline=None)
@given(steps, pods())
def test_a_dry_run_leaves_no_trace(first: list[Any], guest: Pod) -> None:
    cluster = Cluster()
    for step in first:
        apply(cluster, step)
    if not len(cluster.order.rows):
        return
    row = int(cluster.order.rows[0])
    before, position = contents(cluster), cluster.pod_changes.version
    with cluster.dry_run():
        lifted = list(cluster.pods_on[row].values())
        for placed in lifted:
            cluster.take_off(placed)
        stand_in = cluster.stand_in(guest, row)
        cluster.put_on(stand_in)
        cluster.take_off(stand_in)
        cluster.counts.discard_if_empty(stand_in.pod_class)
        for placed in lifted:
            cluster.put_on(placed)
    assert contents(cluster) == before
    assert cluster.pod_changes.version == position


class Ledger:
    """Whoever watches pods: which are on which row, by what it is told."""

    def __init__(self, cluster: Cluster) -> None:
        self.rows: dict[int, set[str]] = {}
        cluster.follow_pods(self)

    def pod_added(self, placed: PlacedPod) -> None:
        there = self.rows.setdefault(placed.row, set())
        assert placed.pod.uid not in there
        there.add(placed.pod.uid)

    def pod_removed(self, placed: PlacedPod) -> None:
        self.rows[placed.row].remove(placed.pod.uid)


@settings(max_examples=examples(100), deadline=None)
@given(steps, steps)
def test_whoever_watches_pods_is_told_of_all_that_come_and_go(first: list[Any], second: list[Any]) -> None:
    cluster = Cluster()
    early = Ledger(cluster)
    for step in first:
        apply(cluster, step)
    late = Ledger(cluster)
    for step in second:
        apply(cluster, step)
    there = {row: set(pods) for row, pods in enumerate(cluster.pods_on) if pods}
    assert {row: pods for row, pods in early.rows.items() if pods} == there
    assert {row: pods for row, pods in late.rows.items() if pods} == there


def test_rows_are_reused_and_columns_grow() -> None:
    cluster = Cluster()
    for number in range(40):
        cluster.set_node(make_node(f"n{number}", cpu=number, labels={ZONE: f"z{number % 3}"}))
    cluster.remove_node("n7")
    row = cluster.set_node(make_node("new", cpu=99))
    assert row == 7
    assert cluster.columns.rows == 40
    assert cluster.resources.allocatable[0].tolist()[7] == 99_000
    assert np.count_nonzero(cluster.labels.column(ZONE).ids) == 39


def test_nodes_are_visited_zone_by_zone_in_turns() -> None:
    cluster = Cluster()
    for name, zone in (("a", "z1"), ("b", "z1"), ("c", "z1"), ("d", "z2")):
        cluster.set_node(make_node(name, labels={ZONE: zone}))
    assert [cluster.names[row] for row in cluster.order.rows] == ["a", "d", "b", "c"]
