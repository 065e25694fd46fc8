"""A pod is explained in a kept cluster as in a new one, whatever changed between two questions."""

from __future__ import annotations

import random
from typing import Any

from msgspec.structs import replace

from podium.engine.explain import explain
from podium.kube import Pod
from podium.testing import node, pod
from podium_dashboard.explaining import Known, LastingCluster, known_of, load_of
from tests.podium_dashboard.scheduler import SmallScheduler

STEPS = 60


def _node(rng: random.Random, number: int) -> Any:
    zone = {"topology.kubernetes.io/zone": f"zone-{number % 2}", "disk": rng.choice(["ssd", "hdd"])}
    return node(f"node-{number}", cpu=rng.choice([4, 8]), memory="16Gi", labels=zone)


def _pod(rng: random.Random, number: int) -> Any:
    return pod(f"pod-{number}", cpu=rng.choice([1, 2, 3, 30]), priority=rng.choice([0, 0, 10]))


def _with_uid(item: Pod, uid: str) -> Pod:
    return replace(item, metadata=replace(item.metadata, uid=uid))


def _change(rng: random.Random, scheduler: SmallScheduler, number: int) -> None:
    """Something that happens to a cluster."""
    engine = scheduler.engine
    placed = list(engine.cluster.pods.values())
    match rng.choice(["pod", "pod", "gone", "node", "new node", "again"]):
        case "pod":
            scheduler.add(_pod(rng, number))
            scheduler.schedule()
        case "gone" if placed:
            engine.intake.delete(rng.choice(placed).pod)
        case "node":
            scheduler.add(_node(rng, rng.randrange(6)))
        case "new node" if rng.random() < 0.2:
            scheduler.add(_node(rng, 10 + number))
        case "again" if placed:
            gone = rng.choice(placed).pod
            engine.intake.delete(gone)
            scheduler.add(_with_uid(pod(gone.name, cpu=1), f"again-{number}"))
            scheduler.schedule()


def _new(known: Known, asked: Pod) -> dict[str, Any]:
    return explain(known.objects, asked, known.config, known.registry, load=load_of(known)).to_data()


def test_answers_are_those_of_a_new_cluster_while_everything_changes() -> None:
    built = steps = 0
    for seed in range(3):
        rng, scheduler, trial = random.Random(seed), SmallScheduler(), LastingCluster()
        scheduler.add(*(_node(rng, number) for number in range(6)))
        scheduler.add(*(_pod(rng, 1000 + number) for number in range(12)))
        scheduler.schedule()
        for number in range(STEPS):
            _change(rng, scheduler, number)
            known = known_of(scheduler.view())
            asked = rng.choice([each for each in known.objects if isinstance(each, Pod)])
            assert trial.explained(known, asked).to_data() == _new(known, asked), (seed, number, asked.key)
        built, steps = built + trial.built, steps + STEPS
    assert built < steps / 3


def test_the_cluster_is_built_once_for_questions_about_the_same_nodes() -> None:
    scheduler, trial = SmallScheduler(), LastingCluster()
    scheduler.add(*(node(f"node-{number}", cpu=4) for number in range(8)))
    for number in range(8):
        scheduler.add(pod(f"pod-{number}", cpu=1))
        scheduler.schedule()
        known = known_of(scheduler.view())
        asked = known.pod(f"default/pod-{number}")
        assert asked is not None
        trial.explained(known, asked)
    assert trial.built == 1


def test_a_pod_that_was_changed_is_explained_as_it_is_now() -> None:
    scheduler, trial = SmallScheduler(), LastingCluster()
    scheduler.add(*(node(f"node-{number}", cpu=4) for number in range(8)))
    large = _with_uid(pod("large", cpu=99), "large")
    scheduler.add(large)
    known = known_of(scheduler.view())
    assert trial.explained(known, large).selected is None
    small = replace(large, spec=pod("large", cpu=1).spec, metadata=replace(large.metadata, labels={"size": "small"}))
    scheduler.engine.intake.set(small)
    known = known_of(scheduler.view())
    asked = known.pod("default/large")
    assert asked is not None
    assert trial.explained(known, asked).selected is not None
