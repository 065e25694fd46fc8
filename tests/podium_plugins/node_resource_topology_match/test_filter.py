"""Which nodes are turned away because no zone fits: on arrays and one node at a time (`refusals` compares both)."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework import Status
from podium.kube import Pod
from podium_plugins.node_resource_topology_match.topology_object import read_settings
from tests.podium.plugins.ask import refusals
from tests.together.zone_worlds import GPU, container, make_report, make_zone, zone_cluster, zone_plugin, zone_pod

G = "1Gi"


def refusal(report: dict[str, Any] | None, pod: Pod, **options: Any) -> str | None:
    """What one node says, beside nodes without a report and with other settings."""
    zones = [{"cpu": 1, "memory": G}, {"cpu": 64, "memory": "64Gi"}]
    others = {"without": None, "lax": make_report(zones, policy="none"), "wide": make_report(zones * 3)}
    cluster = zone_cluster({"n1": report, **others}, **options)
    found = refusals(zone_plugin(cluster), pod, cluster)
    assert found["without"] is found["lax"] is None
    status: Status | None = found["n1"]
    return None if status is None else status.message


ZONES: list[dict[str, str | int]] = [{"cpu": 3, "memory": "8Gi", GPU: 0}, {"cpu": 2, "memory": "8Gi", GPU: 1}]
SMALL: list[dict[str, str | int]] = [{"cpu": 1, "memory": "8Gi", GPU: 0}, {"cpu": 2, "memory": "8Gi", GPU: 1}]
C1 = container("c1", {"cpu": 2, "memory": G})
C2 = container("c2", {"cpu": 2, "memory": G, GPU: 1})
LARGE = container("large", {"cpu": 4, "memory": G})


@pytest.mark.parametrize(
    ("report", "pod", "expected"),
    [
        pytest.param(make_report(ZONES), zone_pod(C1, C2), None, id="each container has a zone"),
        pytest.param(make_report(ZONES), zone_pod(C2, C1), None, id="in the other order, too"),
        pytest.param(make_report(SMALL), zone_pod(C1, C2), "cannot align container", id="the first takes the zone"),
        pytest.param(make_report(ZONES, scope="pod"), zone_pod(C1), None, id="pod scope: fits a zone"),
        pytest.param(make_report(ZONES, scope="pod"), zone_pod(C1, C2), "cannot align pod", id="pod scope: all in one"),
        pytest.param(
            make_report(ZONES), zone_pod(C1, init=[LARGE]), "cannot align init container", id="an init container"
        ),
        pytest.param(
            make_report(ZONES),
            zone_pod(C1, init=[{**LARGE, "restartPolicy": "Always"}]),
            "cannot align sidecar container",
            id="a sidecar",
        ),
        pytest.param(
            make_report(ZONES), zone_pod(C1, init=[C1, C1, C1, C1]), None, id="init containers leave what they took"
        ),
        pytest.param(
            make_report(ZONES, scope="pod"),
            zone_pod(C1, init=[{**C1, "restartPolicy": "Always"}]),
            "cannot align pod",
            id="pod scope: a sidecar adds up",
        ),
        pytest.param(make_report(ZONES), zone_pod({"cpu": 4, "memory": G}), "cannot align container", id="no zone"),
        pytest.param(make_report(ZONES), zone_pod({"cpu": 3, "memory": G}), None, id="exactly what there is"),
        pytest.param(
            make_report(ZONES), zone_pod({"cpu": "3001m", "memory": G}), "cannot align container", id="a little more"
        ),
        pytest.param(
            make_report(ZONES), zone_pod({"cpu": 9, "memory": "99Gi"}, guaranteed=False), None, id="not Guaranteed"
        ),
        pytest.param(
            make_report(ZONES),
            zone_pod({"cpu": 9, GPU: 2}, guaranteed=False),
            "cannot align container",
            id="not Guaranteed, but devices count",
        ),
        pytest.param(make_report(ZONES), zone_pod({}, guaranteed=False), None, id="BestEffort"),
        pytest.param(
            make_report(ZONES), zone_pod({GPU: 2}, guaranteed=False), "cannot align container", id="BestEffort, devices"
        ),
        pytest.param(
            make_report([{"cpu": 4, "memory": G}, {"cpu": 4, "memory": G}]),
            zone_pod({"cpu": 1, "memory": G, GPU: 8}),
            None,
            id="devices that no zone lists do not matter",
        ),
        pytest.param(
            make_report([{"cpu": 4, "memory": G}]),
            zone_pod({"cpu": 1, "memory": G, "ephemeral-storage": "9Ti"}),
            None,
            id="ephemeral storage does not matter",
        ),
        pytest.param(
            make_report([{"cpu": 4}]),
            zone_pod({"cpu": 1, "memory": G}),
            "cannot align container",
            id="no zone has memory",
        ),
        pytest.param(
            make_report([{"cpu": 4}]), zone_pod({"memory": G}, guaranteed=False), None, id="Burstable: memory nowhere"
        ),
        pytest.param(
            make_report([{"cpu": 4, "memory": "8Gi", "example.com/none": 4}]),
            zone_pod({"cpu": 1, "memory": G, "example.com/none": 1}),
            "cannot align container",
            id="the node does not offer it",
        ),
        pytest.param(
            make_report([make_zone(3, {"cpu": 1, "memory": G}), make_zone(1, {"cpu": 4, "memory": G})]),
            zone_pod({"cpu": 3, "memory": "512Mi"}, {"cpu": 1, "memory": "512Mi"}, {"cpu": 1, "memory": "512Mi"}),
            None,
            id="zones with gaps in their numbers, in any order",
        ),
        pytest.param(None, zone_pod({"cpu": 60, "memory": G}), None, id="no report"),
        pytest.param(make_report([]), zone_pod(C1), "cannot align container", id="no zones"),
        pytest.param(make_report([], scope="pod"), zone_pod(C1), "cannot align pod", id="no zones, pod scope"),
    ],
)
def test_filter(report: dict[str, Any] | None, pod: Pod, expected: str | None) -> None:
    assert refusal(report, pod) == expected


@pytest.mark.parametrize("scope", ["pod", "container"])
@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", None, "unheard-of"])
def test_only_single_numa_node_is_checked(policy: str | None, scope: str) -> None:
    assert refusal(make_report(SMALL, policy=policy, scope=scope), zone_pod({"cpu": 9, "memory": G})) is None


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("SingleNUMANodePodLevel", "cannot align pod"),
        ("SingleNUMANodeContainerLevel", "cannot align container"),
        ("BestEffortPodLevel", None),
        ("RestrictedContainerLevel", None),
        ("None", None),
        ("Nonsense", None),
    ],
)
def test_the_deprecated_form_of_policies(word: str, expected: str | None) -> None:
    report = make_report(SMALL, policy=None, scope=None, topologyPolicies=[word])
    assert refusal(report, zone_pod({"cpu": 9, "memory": G})) == expected


def test_attributes_win_over_the_deprecated_form() -> None:
    report = make_report(SMALL, policy="none", scope=None, topologyPolicies=["SingleNUMANodePodLevel"])
    assert refusal(report, zone_pod({"cpu": 9, "memory": G})) is None


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("topologyManagerPolicy", ["single-numa-node", "bogus"], "cannot align container"),
        ("topologyManagerPolicy", ["bogus", "single-numa-node"], "cannot align container"),
        ("topologyManagerPolicy", ["single-numa-node", "none"], None),
        ("topologyManagerPolicy", ["none", "single-numa-node"], "cannot align container"),
        ("topologyManagerScope", ["pod", "node"], "cannot align pod"),
        ("topologyManagerScope", ["container", "pod"], "cannot align pod"),
    ],
)
def test_the_last_valid_value_of_an_attribute_counts(name: str, values: list[str], expected: str | None) -> None:
    report = make_report([{"cpu": 4, "memory": G}] * 2)
    report["attributes"] = [each for each in report["attributes"] if each["name"] != name]
    report["attributes"] += [{"name": name, "value": value} for value in values]
    assert refusal(report, zone_pod({"cpu": 6, "memory": G})) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [(["4", "nonsense"], 4), (["4", "1"], 4), (["4", "16"], 16), (["+4"], 4), (["٤"], 8), (["-4"], 8), (["9" * 19], 8)],
)
def test_numbers_of_numa_nodes_are_read_as_go_reads_them(values: list[str], expected: int) -> None:
    attributes = [("topologyManagerMaxNUMANodes", value) for value in values]
    assert read_settings((), attributes, []).max_numa_nodes == expected


def test_a_report_may_come_before_its_node_and_after_it() -> None:
    from podium_plugins.node_resource_topology_match.topology_object import RESOURCE
    from tools.kit.builders import make_node

    cluster = zone_cluster({"n1": None})
    plugin, pod = zone_plugin(cluster), zone_pod({"cpu": 9, "memory": G})
    store = cluster.objects.custom_store(RESOURCE)
    assert refusals(plugin, pod, cluster) == {"n1": None}
    store.set("n1", make_report(SMALL))
    store.set("n2", make_report(SMALL, name="n2"))
    assert refusals(plugin, pod, cluster)["n1"] is not None
    cluster.set_node(make_node("n2", cpu=64))
    assert refusals(plugin, pod, cluster)["n2"] is not None
    store.discard("n1")
    assert refusals(plugin, pod, cluster)["n1"] is None
    cluster.remove_node("n2")
    cluster.set_node(make_node("n3", cpu=64))  # takes the row of n2
    assert refusals(plugin, pod, cluster) == {"n1": None, "n3": None}
    cluster.set_node(make_node("n2", cpu=64))
    assert refusals(plugin, pod, cluster)["n2"] is not None


def test_more_zones_than_any_node_had() -> None:
    from podium_plugins.node_resource_topology_match.topology_object import RESOURCE

    cluster = zone_cluster({"n1": make_report(SMALL), "n2": make_report(SMALL, name="n2")})
    plugin, pod = zone_plugin(cluster), zone_pod({"cpu": 2, "memory": G})
    assert refusals(plugin, pod, cluster) == {"n1": None, "n2": None}
    wide = make_report([{"cpu": 1, "memory": G}] * 8, name="n2")
    cluster.objects.custom_store(RESOURCE).set("n2", wide)
    found = refusals(plugin, pod, cluster)
    assert found["n1"] is None
    assert found["n2"] is not None
