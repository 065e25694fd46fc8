"""What a question finds is what `explain` finds, and pods placed in one batch go where pods go one by one."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from podium.config.load import default_config
from podium.engine.explain import explain
from podium.plugins import load_registry
from podium.whatif.capacity import Template, capacity, replica
from podium.whatif.fit import fit
from podium.whatif.manifests import Given
from podium.whatif.pod_names import FreePodNames
from podium.whatif.sandbox import Sandbox
from tests.podium.whatif.test_sandbox import cluster_objects, random_pod

REGISTRY = load_registry()
CONFIG = default_config(REGISTRY)


def judged_alike(seed: int) -> None:
    """One pod of a file has the node and the message of `explain`."""
    rng = random.Random(seed)
    objects = cluster_objects(rng)
    pod = random_pod(rng, "asked")
    state = Sandbox(objects, CONFIG, REGISTRY)
    found = fit(state, (), Given(pods=[pod])).pods[0].after
    explained = explain(objects, pod, CONFIG, REGISTRY)
    assert (found.node, found.message) == (explained.selected, explained.message), seed
    remedies = [] if explained.preemption else explained.remedies
    assert found.remedies == remedies, seed
    scores = {node.name: node.total for node in explained.nodes if node.total is not None}
    if scores:
        best = [name for name, total in scores.items() if total == max(scores.values())]
        assert sorted(found.ties) == (sorted(best) if len(best) > 1 else []), seed
        assert found.total == max(scores.values()), seed


def test_a_pod_of_a_file_has_the_node_and_the_message_of_explain() -> None:
    for seed in range(40):
        judged_alike(seed)


@pytest.mark.long
def test_in_three_hundred_dumps_a_pod_has_the_node_and_the_message_of_explain() -> None:
    for seed in range(300):
        judged_alike(seed)


def one_by_one(objects: list[Any], template: Any, most: int) -> list[str]:
    """Where replicas go when each is decided by itself on a cluster that is made from scratch."""
    placed, nodes = list(objects), []
    names = FreePodNames(Sandbox(objects, CONFIG, REGISTRY))
    for _ in range(most):
        pod = replica(template, names)
        node = explain(placed, pod, CONFIG, REGISTRY).selected
        if node is None:
            break
        nodes.append(node)
        placed.append(replace(pod, spec=replace(pod.spec, node_name=node)))
    return nodes


def test_a_batch_gives_the_very_nodes_of_the_loop() -> None:
    for seed in range(8):
        rng = random.Random(seed)
        objects = [each for each in cluster_objects(rng) if getattr(each, "node_name", "x")]
        template = next(pod for number in range(99) if not (pod := random_pod(rng, f"cap{number}")).spec.volumes)
        loop = one_by_one(objects, template, 12)
        found = capacity(Sandbox(objects, CONFIG, REGISTRY), [Template(template)], limit=12)
        assert (found.replicas, sorted(found.on.elements())) == (len(loop), sorted(loop)), seed
