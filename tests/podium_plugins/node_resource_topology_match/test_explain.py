"""What people are told: which zone refused, and why; and what is wrong with arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.config import ConfigError, load_config
from podium.kube import Pod
from podium.plugins import load_registry
from podium_plugins.node_resource_topology_match.alignment import MOST_NODES
from tests.together.zone_worlds import (
    GPU,
    NAME,
    OVER_RESERVE,
    ZoneWorld,
    container,
    make_report,
    zone_cluster,
    zone_plugin,
    zone_pod,
)

ZONES: list[dict[str, str | int]] = [{"cpu": 3, "memory": "8Gi", GPU: 0}, {"cpu": "1500m", "memory": "512Mi", GPU: 1}]


@pytest.mark.parametrize(
    ("report", "pod", "sentence"),
    [
        (
            make_report(ZONES),
            zone_pod({"cpu": 2, "memory": "1Gi", GPU: 1}),
            f"container c1 fits no zone: node-0 has 0 of 1 {GPU}; node-1 has 1500m of 2 cpu and 512Mi of 1Gi memory",
        ),
        (
            make_report(ZONES, scope="pod"),
            zone_pod({"cpu": 4, "memory": 1}),
            "the pod fits no zone: node-0 has 3 of 4 cpu; ",
        ),
        (
            make_report(ZONES),
            zone_pod({"cpu": 1, "memory": 1}, init=[container("setup", {"cpu": 9, "memory": 1})]),
            "init container setup fits no zone: node-0 has 3 of 9 cpu",
        ),
        (
            make_report(ZONES),
            zone_pod({"cpu": 3, "memory": 1}, {"cpu": 2, "memory": 1}),
            "container c2 fits no zone: node-0 has 0 of 2 cpu; node-1 has 1500m of 2 cpu",
        ),
        (
            make_report([{"cpu": 4}]),
            zone_pod({"cpu": 1, "memory": 1}),
            "container c1 fits no zone: node-0 does not list memory",
        ),
        (make_report([]), zone_pod({"cpu": 1, "memory": 1}), "container c1 fits no zone: none is reported"),
        (
            make_report([{"cpu": 4, "memory": 9}]),
            zone_pod({"cpu": 1, "memory": 1, "example.com/none": 1}),
            "container c1 fits no zone: node-0 has enough; the node does not offer example.com/none",
        ),
    ],
)
def test_which_zone_refuses_and_why(report: dict[str, Any], pod: Pod, sentence: str) -> None:
    cluster = zone_cluster({"n1": report, "other": make_report(ZONES, policy="restricted"), "without": None})
    [said] = zone_plugin(cluster).explain(pod)
    assert said.startswith(f"n1: {sentence}")


def test_many_nodes_are_counted() -> None:
    cluster = zone_cluster({f"n{number}": make_report(ZONES) for number in range(MOST_NODES + 2)})
    said = zone_plugin(cluster).explain(zone_pod({"cpu": 9, "memory": 1}))
    assert len(said) == MOST_NODES + 1
    assert said[-1] == "2 more nodes have no zone that the pod fits"


def test_what_is_out_of_date_is_said() -> None:
    world = ZoneWorld({"n1": make_report(ZONES, pods=[])}, args=OVER_RESERVE)
    world.add(zone_pod({"cpu": 1, "memory": 1}, name="f", scheduler="other", node="n1", phase="Running"))
    [said] = world.plugin.explain(zone_pod({"cpu": 1, "memory": 1}))
    assert said.startswith("n1: what is known of its zones is out of date")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"scoringStrategy": {"type": "Fewest"}}, 'scoringStrategy.type: Unsupported value: "Fewest"'),
        ({"scoringStrategy": {"resources": [{"name": "cpu", "weight": 9_000_000}]}}, "must be at most 1000000"),
        ({"cacheResyncPeriodSeconds": -1}, "cacheResyncPeriodSeconds: Invalid value: -1: must be 0 or more"),
        ({"cache": {"foreignPodsDetect": "Some"}}, 'cache.foreignPodsDetect: Unsupported value: "Some"'),
        ({"cache": {"resyncMethod": "None"}}, 'cache.resyncMethod: Unsupported value: "None"'),
        ({"cache": {"informerMode": "Own"}}, 'cache.informerMode: Unsupported value: "Own"'),
        ({"cache": {"resyncScope": "Some"}}, 'cache.resyncScope: Unsupported value: "Some"'),
        ({"preemptionMode": "On"}, 'preemptionMode: Unsupported value: "On"'),
        ({"preemptionmode": "Enabled"}, 'unknown field "preemptionmode"'),
    ],
)
def test_bad_arguments(args: dict[str, Any], message: str) -> None:
    data = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"pluginConfig": [{"name": NAME, "args": args}], "plugins": {"multiPoint": {"enabled": [{"name": NAME}]}}}
        ],
    }
    with pytest.raises(ConfigError) as refusal:
        load_config(json.dumps(data), "config", load_registry())
    assert message in str(refusal.value)
