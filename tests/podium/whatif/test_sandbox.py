"""The sandbox: whatever is changed in it, taking it back leaves the columns as they were, byte for byte."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from podium.config.load import default_config
from podium.kube import Node, Pod, Taint
from podium.plugins import load_registry
from podium.whatif.placements import SandboxPlacer
from podium.whatif.sandbox import Sandbox
from tools.kit.builders import make_node, make_pod
from tools.kit.storage import HOSTNAME, claim_volume, make_claim, make_class, make_volume, pod_using

REGISTRY = load_registry()
CONFIG = default_config(REGISTRY)
ZONES = ("a", "b", "c")
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def cluster_objects(rng: random.Random) -> list[Any]:
    objects: list[Any] = [
        make_node(f"n{number}", labels={"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": zone})
        for number, zone in enumerate(ZONES * 2)
    ]
    objects.append(make_class("late", provisioner=rng.choice((NO_PROVISIONER, "csi.example.test"))))
    for number in range(3):
        objects.append(make_volume(f"v{number}", affinity={HOSTNAME: [f"n{rng.randrange(6)}"]}))
        objects.append(make_claim(f"c{number}"))
    for number in range(8):
        node = f"n{rng.randrange(6)}" if rng.random() < 0.8 else ""
        objects.append(random_pod(rng, f"p{number}", node))
    return objects


def random_pod(rng: random.Random, name: str, node: str = "") -> Pod:
    app = rng.choice(("web", "db"))
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    spec: dict[str, Any] = rng.choice(
        (
            {},
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
            {"topologySpreadConstraints": [spread]},
            {"priority": rng.randrange(3)},
            {"volumes": [claim_volume(f"c{rng.randrange(3)}")]},
        )
    )
    requests = {"cpu": rng.choice(("100m", "1", "2")), **({"gpu.example.com/x": "1"} if rng.random() < 0.2 else {})}
    return make_pod(name, labels={"app": app}, requests=requests, node=node, spec=dict(spec))


def fingerprint(sandbox: Sandbox) -> dict[str, Any]:
    """All that a decision reads of the cluster, of the rows that are in use."""
    cluster = sandbox.cluster
    rows = sorted(cluster.row_of.values())
    resources, objects = cluster.resources, cluster.objects
    scalar = ("gpu.example.com/x",)
    return {
        "rows": dict(cluster.row_of),
        "nodes": [cluster.nodes[row] for row in rows],
        "present": cluster.present[rows].tobytes(),
        "unschedulable": cluster.unschedulable[rows].tobytes(),
        "order": cluster.order.rows.tobytes(),
        "zones": cluster.order.by_zone(),
        "taints": [cluster.taints.values[number] for number in cluster.taints.numbers[rows].tolist()],
        "resources": [resources._lines.view[:, rows].tobytes()],
        "scalar": [
            (resources.allocatable_of(n)[rows].tobytes(), resources.requested_of(n)[rows].tobytes()) for n in scalar
        ],
        "pods on": [(row, list(cluster.pods_on[row])) for row in rows],
        "pods": {uid: (placed.pod, placed.row, placed.assumed) for uid, placed in cluster.pods.items()},
        "counts": {
            query: column.per_row[rows].tobytes() for query, column in sorted(cluster.counts._by_query.items(), key=str)
        },
        "terms": {term: group.per_row[rows].tobytes() for term, group in cluster.terms._groups.items()},
        "claims": [(dict(store._objects), dict(store._assumed)) for store in (objects.claims, objects.volumes)],
        "pending": {pod.key: pod for pod in objects.pending_pods},
        "nominated": {uid: sandbox.engine.nominator.node_of(uid) for uid in cluster.pods},
        "start": sandbox.engine.sampling.next_start,
    }


def change_once(rng: random.Random, sandbox: Sandbox, number: int) -> None:
    nodes, names = sandbox.nodes(), [each.name for each in sandbox.nodes()]
    placed = [each.pod for each in sandbox.cluster.pods.values()]
    pending = sandbox.pending()
    match rng.randrange(9):
        case 0:
            name = f"new{number}"
            sandbox.set(make_node(name, labels={"topology.kubernetes.io/zone": rng.choice((*ZONES, "d"))}))
        case 1 if names:
            sandbox.remove_node(rng.choice(names))
        case 2 if nodes:
            node = rng.choice(nodes)
            sandbox.set(replace(node, spec=replace(node.spec, unschedulable=not node.unschedulable)))
        case 3 if nodes:
            node = rng.choice(nodes)
            labels = {**node.labels, "topology.kubernetes.io/zone": rng.choice((*ZONES, "e"))}
            sandbox.set(replace(node, metadata=replace(node.metadata, labels=labels)))
        case 4 if placed:
            sandbox.remove_pod(rng.choice(placed))
        case 5 if names:
            sandbox.set(random_pod(rng, f"q{number}", rng.choice(names)))
        case 6 if pending:
            SandboxPlacer(sandbox).place(rng.choice(pending))
        case 7 if pending and names:
            sandbox.nominate(rng.choice(pending), rng.choice(names))
        case _:
            pod = random_pod(rng, f"r{number}")
            sandbox.set(pod)
            SandboxPlacer(sandbox, closely=True).place(sandbox.cluster.objects.pending_pods.get(pod.key) or pod)


def tried_and_taken_back(seed: int) -> None:
    rng = random.Random(seed)
    sandbox = Sandbox(cluster_objects(rng), CONFIG, REGISTRY)
    for column in ("app",):
        sandbox.cluster.labels.column(column)
    warm = random_pod(rng, "warm")
    with sandbox.trying():
        SandboxPlacer(sandbox).place(warm)
    before = fingerprint(sandbox)
    depth = 0
    for number in range(rng.randrange(1, 12)):
        if rng.random() < 0.3:
            sandbox.fork()
            depth += 1
        if not depth:
            sandbox.fork()
            depth = 1
        change_once(rng, sandbox, number)
        if depth > 1 and rng.random() < 0.3:
            inner = rng.random() < 0.5
            (sandbox.commit if inner else sandbox.revert)()
            depth -= 1
    while depth:
        sandbox.revert()
        depth -= 1
    after = fingerprint(sandbox)
    after["counts"] = {query: after["counts"][query] for query in before["counts"]}
    assert after == before, seed


def test_what_was_changed_is_taken_back_byte_for_byte() -> None:
    for seed in range(60):
        tried_and_taken_back(seed)


@pytest.mark.long
def test_ten_thousand_sequences_of_changes_are_taken_back_byte_for_byte() -> None:
    for seed in range(10_000):
        tried_and_taken_back(seed)


def test_a_claim_that_two_pods_share_is_bound_by_the_first() -> None:
    labels = {name: {HOSTNAME: name} for name in ("n1", "n2")}
    nodes = [make_node(name, labels=labels[name]) for name in labels]
    sandbox = Sandbox(
        [*nodes, make_class(provisioner=NO_PROVISIONER), make_volume(affinity={HOSTNAME: ["n2"]}), make_claim()],
        CONFIG,
        REGISTRY,
    )
    placer = SandboxPlacer(sandbox)
    with sandbox.trying():
        assert [placer.place(pod_using("data", name=name)).node for name in ("p1", "p2")] == ["n2", "n2"]
        sandbox.remove_node("n2")
        message = placer.place(pod_using("data", name="p3")).message
        assert message is not None
        assert "didn't match PersistentVolume's node affinity" in message
    claim = sandbox.cluster.objects.claims.get("default/data")
    assert claim is not None
    assert claim.spec.volume_name == ""


def test_a_fork_that_is_taken_back_ends_at_the_fork_around_it() -> None:
    sandbox = Sandbox([make_node("n1")], CONFIG, REGISTRY)
    sandbox.fork()
    sandbox.set(make_node("n2"))
    sandbox.fork()
    sandbox.remove_node("n1")
    sandbox.revert()
    assert [node.name for node in sandbox.nodes()] == ["n1", "n2"]
    sandbox.fork()
    sandbox.remove_node("n2")
    sandbox.commit()
    assert [node.name for node in sandbox.nodes()] == ["n1"]
    sandbox.revert()
    assert [node.name for node in sandbox.nodes()] == ["n1"]


def test_taking_back_costs_in_proportion_to_what_was_changed() -> None:
    sandbox = Sandbox([make_node(f"n{number}") for number in range(50)], CONFIG, REGISTRY)
    sandbox.fork()
    node = sandbox.nodes()[0]
    sandbox.set(replace(node, spec=replace(node.spec, taints=(Taint(key="k", effect="NoSchedule"),))))
    assert len(sandbox._undo) == 1
    sandbox.revert()
    assert isinstance(sandbox.node("n0"), Node)
    assert sandbox._undo == []
