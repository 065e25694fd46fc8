"""Reports that are wrong: what is left of them, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.podium.plugins.ask import raw_scores, refusals
from tests.together.zone_worlds import (
    OVER_RESERVE,
    ZoneWorld,
    make_report,
    make_zone,
    zone_cluster,
    zone_plugin,
    zone_pod,
)
from tools.kit.effort import examples

POD = zone_pod({"cpu": 2, "memory": "1Gi"})
GOOD: dict[str, str | int] = {"cpu": 4, "memory": "8Gi"}


def resource(name: str, **amounts: Any) -> dict[str, Any]:
    return {"name": name, **amounts}


def zone(*resources: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "node-0", "type": "Node", "resources": list(resources), **fields}


@pytest.mark.parametrize(
    ("report", "fits", "said"),
    [
        pytest.param(make_report([zone()]), False, "zone node-0 has no resources", id="a zone without resources"),
        pytest.param(make_report([]), False, "it has no usable zone", id="no zones"),
        pytest.param(make_report([], policy="none"), True, "it has no usable zone", id="no zones, no policy"),
        pytest.param(
            {"metadata": {"name": "n1"}}, True, "it has no usable zone", id="half-written: no zones, no policy"
        ),
        pytest.param(
            make_report([make_zone(0, GOOD), zone(resource("cpu", capacity=4), name="node-1")]),
            True,
            "zone node-1: resource cpu has no available amount; the zone counts as not having it",
            id="half-written: a resource without amounts",
        ),
        pytest.param(
            make_report([zone(resource("cpu", available="lots"), resource("memory", available="8Gi"))]),
            False,
            'zone node-0: resource cpu available: quantity "lots" cannot be read',
            id="no quantity",
        ),
        pytest.param(
            make_report([zone(resource("cpu", available=-3), resource("memory", available="8Gi"))]),
            False,
            "zone node-0: resource cpu: available is -3, which counts as 0",
            id="negative",
        ),
        pytest.param(
            make_report([GOOD], policy="strict"),
            True,
            'attribute topologyManagerPolicy: "strict" is ignored; it must be one of none, best-effort',
            id="unknown policy",
        ),
        pytest.param(
            make_report([GOOD], scope="node"),
            True,
            'attribute topologyManagerScope: "node" is ignored',
            id="unknown scope",
        ),
        pytest.param(
            make_report([GOOD], attributes={"topologyManagerMaxNUMANodes": "1"}),
            True,
            'attribute topologyManagerMaxNUMANodes: "1" is ignored; it must be a whole number above 1',
            id="maximum of NUMA nodes",
        ),
        pytest.param(
            make_report([GOOD], topologyPolicies=["Strictest"]),
            True,
            'topologyPolicies[0]: "Strictest" is not a known policy',
            id="unknown policy in the deprecated form",
        ),
        pytest.param(
            make_report([{**make_zone(0, GOOD), "name": "numa-node-0"}]),
            False,
            'zone "numa-node-0" is left out; zones of type Node must be named node-0 to node-63',
            id="the zone names of old samples",
        ),
        pytest.param(
            make_report([make_zone(0, GOOD), make_zone(64, GOOD)]), True, 'zone "node-64" is left out', id="too high"
        ),
        pytest.param(
            make_report([make_zone(0, {**GOOD, "cpu": 1}), make_zone(0, GOOD)]),
            False,
            "zone node-0 is there twice; the first counts",
            id="twice",
        ),
        pytest.param(
            make_report([make_zone(0, GOOD, {0: 10, 1: -20})]),
            True,
            "zone node-0: a cost is left out",
            id="negative cost",
        ),
    ],
)
@pytest.mark.parametrize("args", [{}, OVER_RESERVE])
def test_bad_reports(report: dict[str, Any], fits: bool, said: str, args: dict[str, Any]) -> None:
    world = ZoneWorld({"n1": report}, args=args)
    assert any(each.startswith("NodeResourceTopology n1: ") and said in each for each in world.reports)
    world.attempt(POD)
    assert (world.node_of("p1") == "n1") is fits
    before = len(world.reports)
    world.set_report({**report, "metadata": {"name": "n1", "resourceVersion": "2"}})
    assert len(world.reports) == before, "it is said once"
    world.set_report(make_report([GOOD], pods=[POD]))
    assert not list(world.scheduler.problems)


def test_other_types_of_zones_do_not_count() -> None:
    socket = {**make_zone(1, {"cpu": 64, "memory": "64Gi"}), "type": "Socket"}
    cluster = zone_cluster({"n1": make_report([make_zone(0, {"cpu": 1, "memory": "8Gi"}), socket])})
    assert refusals(zone_plugin(cluster), POD, cluster)["n1"] is not None


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["node-0", "Node", "4", "-1", "1e400", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "type", "resources", "available", "value", "costs", "attributes", "zones", "metadata"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("zones", "attributes", "topologyPolicies", "metadata"), ANYTHING),
)


@settings(max_examples=examples(200), deadline=None)
@given(ANYTHING | FIELDS, st.sampled_from([{}, OVER_RESERVE, {"discardReservedNodes": True}]))
def test_nothing_that_can_be_written_breaks_anything(report: Any, args: dict[str, Any]) -> None:
    cluster = zone_cluster({"n1": report})
    for strategy in ("LeastAllocated", "LeastNUMANodes"):
        plugin = zone_plugin(cluster, scoringStrategy={"type": strategy}, **args)
        refusals(plugin, POD, cluster)
        raw_scores(plugin, POD, cluster)
        plugin.explain(POD)
