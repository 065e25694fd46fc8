"""The fast path is the slow path.

Random clusters go through random sequences of arrivals, placements, deletions, node changes, label changes,
preemptions and failed binds. After every step the scheduler that keeps its answers is compared with one built from
scratch from the same objects: same feasible set, same scores of every plugin, same choice, same message.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.config import default_config
from podium.engine.decide import NodeSearch, decide, make_room
from podium.engine.sampling import Sampling
from podium.engine.scheduler import Scheduler
from podium.framework import Cycle, Handle, ManualClock, PluginError, Status
from podium.framework.handle import Driver, Effect, EngineState, Preemptor
from podium.framework.nominator import Nominator
from podium.framework.profile import ProfileRuntime
from podium.kube import Namespace, Node, Pod, Service
from podium.plugins import load_registry
from podium.preemption.dry_runs import Candidate
from podium.preemption.evictions import CANDIDATES
from podium.testing.memory_writer import MemoryWriter
from tests.podium.engine.storage_worlds import change, first_storage, volumes_of, with_claims
from tests.podium.plugins.pod_worlds import NAMESPACES, random_labels, random_node, random_pod
from tools.kit.builders import build
from tools.kit.effort import examples

REGISTRY = load_registry()
DEFAULT = default_config(REGISTRY)
# No weight is 1: that would hide a forgotten one.
WEIGHTS = {name: weight + 1 for name, weight in DEFAULT.profiles[0].weights.items()}
CONFIG = msgspec.structs.replace(DEFAULT, profiles=(msgspec.structs.replace(DEFAULT.profiles[0], weights=WEIGHTS),))


class World(MemoryWriter):
    """Everything outside the scheduler: it binds (or fails to), evicts, and remembers what the API server would."""

    clock: ManualClock

    def __init__(self, rng: random.Random) -> None:
        super().__init__(ManualClock(1_000_000.0), at_once=True)
        self.rng = rng
        self.looking = False

    def bind(self, pod: Pod, node_name: str) -> Effect:
        if self.rng.random() < 0.15:
            return Status.error("the API server said no")
        return super().bind(pod, node_name)

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        if not self.looking:
            self.victims += victims
        done(None)


def node(rng: random.Random, name: str, labels: dict[str, str] | None = None) -> Node:
    data = random_node(rng, name)
    if labels is not None:
        data["metadata"]["labels"] = labels
    data["spec"]["unschedulable"] = rng.random() < 0.1
    data["status"] = {
        "allocatable": {
            "cpu": rng.choice(("0", "1", "2", "2")),
            "memory": "4Gi",
            "pods": rng.choice(("2", "5", "10")),
            **({"example.com/gpu": 2} if rng.random() < 0.3 else {}),
        },
        "images": [{"names": ["app:1"], "sizeBytes": 300 << 20}] if rng.random() < 0.4 else [],
    }
    return build(Node, data)


def template(rng: random.Random) -> dict[str, Any]:
    """The spec and labels of a kind of pod; most are plain in most respects, as in life."""
    data = random_pod(rng, "x", "")
    data["metadata"].pop("deletionTimestamp", None)
    spec = data["spec"]
    for part, chance in (("affinity", 0.5), ("topologySpreadConstraints", 0.5), ("nodeSelector", 0.3)):
        if rng.random() > chance:
            spec.pop(part, None)
    requests = rng.choice(({}, {"cpu": "100m", "memory": "100Mi"}, {"cpu": "700m"}, {"example.com/gpu": 1}))
    ports = [{"containerPort": 80, "hostPort": 80}] if rng.random() < 0.2 else []
    spec["containers"] = [{"name": "c", "image": "app:1", "ports": ports, "resources": {"requests": requests}}]
    if rng.random() < 0.4:
        spec["volumes"] = volumes_of(rng)
        data["metadata"]["namespace"] = "default"
    spec["priority"] = rng.choice((0, 0, 0, 10, 100))
    kind: dict[str, Any] = data
    return kind


def template_with_claims(rng: random.Random) -> dict[str, Any]:
    """Nothing but volumes, and now and then a request that asks for room to be made."""
    requests = rng.choice(({}, {}, {"cpu": "700m"}))
    spec = {
        "containers": [{"name": "c", "resources": {"requests": requests}}],
        "priority": rng.choice((0, 10, 100)),
        "volumes": volumes_of(rng),
    }
    return {"metadata": {"namespace": "default"}, "spec": spec}


def instance(kind: dict[str, Any], number: int) -> Pod:
    """One pod of a kind; its claims are its own."""
    metadata = {**kind["metadata"], "name": f"p{number}", "uid": f"u{number}"}
    spec = {**kind["spec"], "volumes": with_claims(kind["spec"].get("volumes", []), number)}
    return build(Pod, {**kind, "metadata": metadata, "spec": spec})


class Drive:
    """A scheduler under random events."""

    def __init__(self, seed: int, make: Callable[[random.Random], dict[str, Any]] = template) -> None:
        self.rng = random.Random(seed)
        self.world = World(self.rng)
        self.scheduler = Scheduler(
            CONFIG,
            REGISTRY,
            Driver(
                clock=self.world.clock,
                writer=self.world,
                rng=random.Random(1),
            ),
            self.world,
        )
        self.kinds = [make(self.rng) for _ in range(4)]
        self.numbers = iter(range(1_000_000))
        intake = self.scheduler.intake
        for name in NAMESPACES[:3]:
            intake.set(build(Namespace, {"metadata": {"name": name, "labels": random_labels(self.rng)}}))
        for item in first_storage(self.rng):
            intake.set(item)
        for number in range(self.rng.randint(2, 6)):
            intake.set(node(self.rng, f"n{number}"))

    @property
    def cluster(self) -> Cluster:
        return self.scheduler.cluster

    def samples(self, kind: dict[str, Any]) -> list[int]:
        """The numbers of the pods of a kind to compare: several where they differ in their claims."""
        return self.rng.sample(range(999_900, 1_000_000), 3 if kind["spec"].get("volumes") else 1)

    def step(self) -> None:
        self.rng.choice(
            (
                *(self.arrive, self.arrive, self.arrive),
                *(self.end_pod, self.change_pod),
                *(self.change_node, self.replace_nodes),
                *(self.change_rest, self.change_storage, self.change_nomination),
            )
        )()
        self.settle()

    def settle(self) -> None:
        """Confirm what was bound, delete what was evicted."""
        for pod, node_name in self.world.placements:
            if pod.uid in self.cluster.pods and self.rng.random() < 0.8:
                spec = msgspec.structs.replace(pod.spec, node_name=node_name)
                self.scheduler.intake.set(msgspec.structs.replace(pod, spec=spec))
        self.world.placements.clear()
        for victim in self.world.victims:
            self.scheduler.intake.delete(victim)
        self.world.victims.clear()

    def arrive(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.scheduler.intake.set(instance(self.rng.choice(self.kinds), next(self.numbers)))
        while self.scheduler.schedule_one() is not None:
            self.world.clock.advance(self.rng.choice((0.0, 0.01, 2.0)))
            self.scheduler.tick()
            if self.rng.random() < 0.2:
                break

    def end_pod(self) -> None:
        placed = [each.pod for each in self.cluster.pods.values() if not each.assumed]
        if placed:
            self.scheduler.intake.delete(self.rng.choice(placed))

    def change_node(self) -> None:
        rows = self.cluster.order.rows.tolist()
        roll = self.rng.random()
        if roll < 0.3 or not rows:
            name = f"n{self.rng.randint(0, 9)}"
            known = self.cluster.nodes[self.cluster.row_of[name]] if name in self.cluster.row_of else None
            self.scheduler.intake.set(node(self.rng, name, self._labels_to_keep(known)))
            return
        known = self.cluster.nodes[self.rng.choice(rows)]
        assert known is not None
        if roll < 0.5:
            self.scheduler.intake.delete(known)
        else:
            self.scheduler.intake.set(node(self.rng, known.name, self._labels_to_keep(known)))

    def replace_nodes(self) -> None:
        """Nodes go with all their pods, others come: their rows are used again."""
        for _ in range(self.rng.randint(1, 2)):
            rows = self.cluster.order.rows.tolist()
            if rows:
                row = self.rng.choice(rows)
                gone = self.cluster.nodes[row]
                for placed in list(self.cluster.pods_on[row].values()):
                    self.scheduler.intake.delete(placed.pod)
                self.scheduler.intake.delete(gone)
            if self.rng.random() < 0.8:
                self.scheduler.intake.set(node(self.rng, f"fresh{next(self.numbers)}"))

    def _labels_to_keep(self, known: Node | None) -> dict[str, str] | None:
        """Other labels may change; zones keep, as an order already built does not follow them."""
        if known is None:
            return None
        fresh: dict[str, str] = random_node(self.rng, known.name)["metadata"]["labels"]
        zone = "topology.kubernetes.io/zone"
        fresh.pop(zone, None)
        return fresh | ({zone: known.labels[zone]} if zone in known.labels else {})

    def change_pod(self) -> None:
        placed = [each.pod for each in self.cluster.pods.values() if not each.assumed]
        if placed:
            pod = self.rng.choice(placed)
            change = {"labels": random_labels(self.rng), "resource_version": str(next(self.numbers))}
            if self.rng.random() < 0.3:
                change["deletion_timestamp"] = "2026-01-01T00:00:00Z"
            self.scheduler.intake.set(
                msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **change))
            )

    def change_nomination(self) -> None:
        """A waiting pod is promised a node, or no longer is; nothing else changes."""
        waiting = list(self.cluster.objects.pending_pods)
        pod = self.rng.choice(waiting) if waiting else instance(self.rng.choice(self.kinds), next(self.numbers))
        names = [self.cluster.names[row] for row in self.cluster.order.rows.tolist()]
        status = msgspec.structs.replace(pod.status, nominated_node_name=self.rng.choice(["", *names, *names]))
        metadata = msgspec.structs.replace(pod.metadata, resource_version=str(next(self.numbers)))
        self.scheduler.intake.set(msgspec.structs.replace(pod, metadata=metadata, status=status))

    def change_storage(self) -> None:
        names = [self.cluster.names[row] for row in self.cluster.order.rows.tolist()]
        item, comes = change(self.rng, names)
        store = self.cluster.objects.store_of(type(item))
        assert store is not None
        if comes:
            self.scheduler.intake.set(item)
        elif store.get(item.key) is not None:
            self.scheduler.intake.delete(item)

    def change_rest(self) -> None:
        name = self.rng.choice(("s1", "s2"))
        service = build(
            Service, {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": random_labels(self.rng)}}
        )
        namespace = build(
            Namespace, {"metadata": {"name": self.rng.choice(NAMESPACES[:3]), "labels": random_labels(self.rng)}}
        )
        self.rng.choice(
            (
                lambda: self.scheduler.intake.set(service),
                lambda: self.scheduler.intake.delete(service),
                lambda: self.scheduler.intake.set(namespace),
            )
        )()


def from_scratch(drive: Drive) -> ProfileRuntime:
    """A profile on a cluster built anew from the objects the driven one holds."""
    kept, cluster, nominator = drive.cluster, Cluster(), Nominator()
    for rows in kept.order.by_zone():
        for row in rows:
            known = kept.nodes[row]
            assert known is not None
            cluster.set_node(known)
    for placed_here in kept.pods_on:
        for placed in placed_here.values():
            cluster.assume(placed.pod, kept.names[placed.row])
    for store, fresh in zip(kept.objects.stores(), cluster.objects.stores(), strict=True):
        for item in store:
            fresh.set(item.key, item)
    for name in drive.scheduler.nominator.nodes():
        for pod in drive.scheduler.nominator.on(name):
            nominator.nominate(pod, name)
    handle = Handle(
        Driver(clock=drive.world.clock, writer=drive.world, rng=random.Random(1)),
        EngineState(cluster=cluster, nominator=nominator),
    )
    return ProfileRuntime(CONFIG.profiles[0], REGISTRY, handle)


def account(runtime: ProfileRuntime, pod: Pod, start: int) -> dict[str, Any]:
    """Everything a decision says, in names; nodes are visited from `start` on."""
    cycle = Cycle(pod, runtime.handle.cluster)
    try:
        decision = decide(runtime, cycle, Sampling(next_start=start))
    except PluginError as error:
        return {"error": str(error)}
    names = runtime.handle.cluster.names
    said: dict[str, Any] = {
        "feasible": [names[row] for row in decision.search.feasible.tolist()],
        "chosen": None if decision.row is None else names[decision.row],
    }
    if decision.scores is not None:
        said["scores"] = {name: scores.tolist() for name, scores in decision.scores.by_plugin.items()}
        said["totals"] = decision.scores.total.tolist()
    if decision.row is None:
        said |= failure(runtime, cycle, decision.search)
    return said


def failure(runtime: ProfileRuntime, cycle: Cycle, search: NodeSearch) -> dict[str, Any]:
    """What is said of a pod that fits nowhere, and what preemption would do."""
    runtime.handle.rng.seed(1)
    diagnosis = search.diagnosis()
    make_room(runtime, cycle, diagnosis)
    evictions: list[Candidate] = cycle.data.get(CANDIDATES, [])
    return {
        "message": diagnosis.message,
        "evictions": [(each.node_name, [victim.key for victim in each.victims]) for each in evictions],
    }


def compare(drive: Drive) -> int:
    """Compare all kinds of pods; returns how many were answered from memory."""
    drive.world.looking = True
    scheduler = drive.scheduler
    runtime = scheduler.profiles["default-scheduler"]
    fresh = from_scratch(drive)
    remembered = 0
    for pod in [instance(kind, number) for kind in drive.kinds for number in drive.samples(kind)]:
        start = drive.rng.choice((0, 0, 0, 1, 3))
        expected = account(fresh, pod, start)
        assert account(runtime, pod, start) == expected, "the kept state differs from a fresh one"
        for _ in range(4):  # the third time the answers are kept, the fourth time they are known
            cycle = Cycle(pod, scheduler.cluster)
            known = scheduler.answer_cache.decide(runtime, cycle, Sampling(next_start=start))
        if known is None:
            continue
        assert "error" not in expected
        remembered += 1
        if isinstance(known, NodeSearch):
            assert expected["chosen"] is None
            for _ in range(2):  # the second time PostFilter may know from the first
                assert failure(runtime, cycle, known) == {key: expected[key] for key in ("message", "evictions")}
            continue
        assert scheduler.cluster.names[known] == expected["chosen"]
        kept = scheduler.answer_cache.get(runtime, cycle)
        assert kept is not None
        rows, table = kept.table()
        assert [scheduler.cluster.names[each] for each in rows.tolist()] == expected["feasible"]
        if "scores" in expected:
            assert {name: scores.tolist() for name, scores in table.by_plugin.items()} == expected["scores"]
            assert table.total.tolist() == expected["totals"]
    drive.world.looking = False
    return remembered


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32))
def test_kept_answers_equal_answers_from_scratch_after_every_step(seed: int) -> None:
    drive = Drive(seed)
    compare(drive)
    for _ in range(25):
        drive.step()
        compare(drive)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32))
def test_pods_that_share_kept_answers_are_told_apart_by_their_claims(seed: int) -> None:
    drive = Drive(seed, template_with_claims)
    for _ in range(25):
        drive.rng.choice((drive.step, drive.arrive, drive.change_storage))()
        drive.settle()
        compare(drive)


def test_most_decisions_are_answered_from_memory() -> None:
    """The comparison means something only if the fast path is really taken."""
    drive = Drive(7)
    answered = 0
    for _ in range(40):
        drive.step()
        answered += compare(drive)
    assert answered > 40


def test_a_wrongly_declared_scope_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resources change with every pod placed: a filter that claims to look at the node alone must be found out."""
    from podium.framework import DependsOn, NodePart
    from podium.plugins.node_resources_fit import NodeResourcesFit

    monkeypatch.setattr(NodeResourcesFit, "depends_on", DependsOn(node=NodePart.OBJECT, claims=False))
    with pytest.raises(AssertionError):
        for seed in range(20):
            drive = Drive(seed)
            for _ in range(25):
                drive.step()
                compare(drive)
