"""The quick ways give the answers of the slow one: arrays and single nodes, the answer cache and a fresh decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.engine.decide import decide
from podium.engine.sampling import Sampling
from podium.framework import Cycle
from podium.kube import Pod
from tests.podium.plugins.ask import raw_scores, refusals
from tests.together.zone_worlds import (
    GPU,
    NAME,
    ZoneWorld,
    container,
    make_report,
    make_zone,
    zone_cluster,
    zone_plugin,
    zone_pod,
)
from tools.kit.effort import examples

STRATEGIES = ("LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes")
CACHES: tuple[dict[str, Any], ...] = ({}, {"discardReservedNodes": True}, {"cacheResyncPeriodSeconds": 5})

amounts: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"cpu": st.sampled_from([0, "500m", 1, 2, 3, 4, 8]), "memory": st.sampled_from(["1Gi", "2Gi", "8Gi"])},
    optional={GPU: st.integers(0, 3), "hugepages-2Mi": st.sampled_from([0, "2Mi", "8Mi"])},
)
resources_of_zones: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(["cpu", "memory", GPU, "hugepages-2Mi"]), st.sampled_from([0, 1, 2, 4, 8, "16Gi"]), max_size=4
)


@st.composite
def zones(draw: Any) -> list[dict[str, Any]]:
    numbers = draw(st.lists(st.integers(0, 9), unique=True, max_size=5))
    return [
        make_zone(
            number, draw(resources_of_zones), draw(st.dictionaries(st.sampled_from(numbers), st.integers(10, 40)))
        )
        for number in numbers
    ]


@st.composite
def reports(draw: Any, name: str = "n1") -> dict[str, Any] | None:
    if draw(st.integers(0, 9)) == 0:
        return None
    policy = draw(st.sampled_from(["single-numa-node"] * 3 + ["none", "best-effort", "restricted"]))
    return make_report(
        draw(zones()), name=name, policy=policy, scope=draw(st.sampled_from(["pod", "container"])), pods=[]
    )


@st.composite
def pods(draw: Any) -> Pod:
    guaranteed = draw(st.integers(0, 3)) > 0
    made = [
        container(f"c{n}", each, guaranteed=guaranteed)
        for n, each in enumerate(draw(st.lists(amounts, min_size=1, max_size=3)))
    ]
    init = [
        container(f"i{n}", each, guaranteed=guaranteed) for n, each in enumerate(draw(st.lists(amounts, max_size=2)))
    ]
    if init and draw(st.integers(0, 1)):
        init[0]["restartPolicy"] = "Always"
    return zone_pod(*made, init=init)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(reports(), min_size=1, max_size=6), pods(), st.sampled_from(STRATEGIES))
def test_arrays_and_single_nodes_agree(drawn: list[dict[str, Any] | None], pod: Pod, strategy: str) -> None:
    cluster = zone_cluster({f"n{number}": report for number, report in enumerate(drawn)})
    for number, amount in enumerate(drawn):
        cluster.set_pod(zone_pod({"cpu": number, "memory": "1Gi"}, name=f"placed{number}", node=f"n{number}"))
        assert amount is None or amount
    plugin = zone_plugin(cluster, scoringStrategy={"type": strategy}, cacheResyncPeriodSeconds=5)
    refusals(plugin, pod, cluster)  # both check that every form of asking gives the same
    raw_scores(plugin, pod, cluster)


def decisions(world: ZoneWorld, pods: list[Pod], changes: Iterator[Any]) -> Iterator[tuple[str | None, str | None]]:
    """Where each pod goes by the answer cache, and where without it."""
    runtime = world.scheduler.profiles["default-scheduler"]
    for pod in pods:
        report = next(changes, None)
        if report is not None:
            world.set_report(report[1], report[0])
        world.add(pod)
        fresh = decide(runtime, Cycle(pod, world.cluster), Sampling(100, parity=False))
        world.try_next()
        yield world.node_of(pod.name), None if fresh.row is None else world.cluster.names[fresh.row]


@pytest.mark.parametrize("cache", CACHES, ids=["pass-through", "discard-reserved", "over-reserve"])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_the_answer_cache_decides_as_a_fresh_decision(cache: dict[str, Any], data: st.DataObject) -> None:
    names = [f"n{number}" for number in range(5)]
    first = {name: data.draw(reports(name)) for name in names}
    strategy = {"type": data.draw(st.sampled_from(STRATEGIES))}
    world = ZoneWorld(first, args={**cache, "scoringStrategy": strategy})
    template = data.draw(pods())
    drawn = data.draw(st.lists(st.none() | st.tuples(st.sampled_from(names), reports()), max_size=12))
    made = [_renamed(template, f"p{number}") for number in range(12)]
    for cached, fresh in decisions(world, made, iter(drawn)):
        assert cached == fresh
    assert NAME in world.scheduler.profiles["default-scheduler"].plugins


def _renamed(pod: Pod, name: str) -> Pod:
    from msgspec.structs import replace

    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"default-{name}"))
