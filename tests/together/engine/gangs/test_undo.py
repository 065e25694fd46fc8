"""A gang that is dropped leaves the state exactly as it was."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.kube import Node, Pod
from tests.podium.cluster.test_undo import contents
from tests.together.gang_worlds import GangWorld, make_group, member
from tools.kit.builders import make_node
from tools.kit.effort import examples

ANTI = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": "zone"}
            ]
        }
    }
}


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    return [make_node(f"n{i}", cpu=cpu, labels={"zone": f"z{i % 2}"}) for i, cpu in enumerate(sizes)]


@st.composite
def gangs(draw: st.DrawFn) -> list[Pod]:
    pods = []
    for number in range(draw(st.integers(2, 8))):
        kind = draw(st.sampled_from(["plain", "port", "apart"]))
        spec: dict[str, Any] = ANTI if kind == "apart" else {}
        pod = member(f"pg-{number}", requests={"cpu": draw(st.integers(1, 3))}, labels={"app": kind}, spec=spec)
        pods.append(pod)
    return pods


@settings(max_examples=examples(60), deadline=None)
@given(nodes(), gangs(), st.sampled_from([{}, {"podium.dev/topology-key": "zone"}]), st.booleans())
def test_a_dropped_gang_leaves_no_trace_and_a_bound_one_is_whole(
    there: list[Node], gang: list[Pod], annotations: dict[str, str], soft: bool
) -> None:
    if annotations and soft:
        annotations = {**annotations, "podium.dev/topology-mode": "soft"}
    world = GangWorld(nodes=there)
    world.set_group(make_group(minimum=len(gang), annotations=annotations))
    before = contents(world.cluster)
    world.add(*gang)
    world.run()
    assert len(world.bound) in (0, len(gang))
    assert (len(world.queue.in_flight), len(world.scheduler.waiting)) == (0, 0)
    if not world.bound:
        assert contents(world.cluster) == before
        assert len(world.queue) == len(gang), "no pod is lost"
        record = world.plugin.record("default/pg")
        assert record is not None
        assert (record.placed, record.domain, record.members) == ({}, None, len(gang))
