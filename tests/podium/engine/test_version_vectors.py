"""What Kubernetes 1.37 decides and says differently from 1.36, and 1.35 from both: one row for each known case.

The rows V1 to V41 were each seen on the real kube-scheduler, or read in its code, before they were written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from podium.config import default_config, load_config
from podium.engine.decide import decide
from podium.engine.explain import Explanation, explain
from podium.engine.sampling import Sampling
from podium.framework import ManualClock
from podium.kube import CSIDriver, Namespace, Pod, PodDisruptionBudget
from podium.kube.requests import requested
from podium.kube.versions import KNOWN, NEWEST, Gate, VersionRules
from podium.plugins import load_registry
from podium.run.metrics import Metrics
from tests.podium.engine.schedulers import World
from tests.podium.engine.test_messages import filled, nodes, uses
from tests.podium.framework.runtimes import cycle_of, make_runtime
from tools.kit.builders import build, make_cluster, make_handle, make_node, make_pod
from tools.kit.storage import (
    HOSTNAME,
    claim_volume,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

REGISTRY = load_registry()
V35, V36, V37 = (KNOWN[name] for name in ("1.35", "1.36", "1.37"))
NOBODY = "preemption: 0/{0} nodes are available: {0} No preemption victims found for incoming pod."
MIB = 1 << 20
GONE = "no new claims to deallocate, "


def explained(rules: VersionRules, objects: Sequence[Any], pod: Pod, config: str = "") -> Explanation:
    settings = load_config(config, "f", REGISTRY, rules).config if config else default_config(REGISTRY, rules)
    return explain([*objects, pod], pod, settings, REGISTRY)


def said(rules: VersionRules, objects: Sequence[Any], pod: Pod, config: str = "") -> str:
    return explained(rules, objects, pod, config).message or ""


def scores(rules: VersionRules, objects: Sequence[Any], pod: Pod, plugin: str) -> dict[str, int]:
    judged = explained(rules, objects, pod).nodes
    return {each.name: each.scores[plugin] for each in judged if plugin in each.scores}


# Messages


def test_v1_nothing_is_said_of_claims_that_are_not_there() -> None:
    objects, pod = [*nodes({}, {}, {}), *filled("n1", "n2", "n3")], make_pod(requests={"cpu": 3})
    lacking = "0/3 nodes are available: 3 Insufficient cpu. "
    assert said(V36, objects, pod) == f"{lacking}{GONE}{NOBODY.format(3)}"
    assert said(V37, objects, pod) == f"{lacking}{NOBODY.format(3)}"


def test_v3_dynamic_resources_without_notes_still_say_not_found() -> None:
    objects = [*nodes({}, {}, {}), make_class("now", mode="Immediate"), make_claim("unbound", storage_class="now")]
    for rules in KNOWN.values():
        message = said(rules, objects, make_pod(spec=uses("unbound")))
        assert message == "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"


def test_v5_without_preemption_the_reasons_end_with_their_dot() -> None:
    config = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}]\n"
    )
    objects, pod = [make_node("n1", cpu=1)], make_pod(requests={"cpu": 3})
    lacking = "0/1 nodes are available: 1 Insufficient cpu."
    assert said(V36, objects, pod, config) == f"{lacking} no new claims to deallocate"
    assert said(V37, objects, pod, config) == lacking


def test_v6_a_preemption_names_its_node_and_the_number_of_victims() -> None:
    objects = [*nodes({}, {}, {}), *filled("n1", "n2", "n3", priority=100)]
    objects += [make_node("n4"), *(make_pod(f"v{i}", node="n4", requests={"cpu": 2}) for i in (1, 2))]
    pod = make_pod("urgent", priority=50, requests={"cpu": 4})
    lacking = "0/4 nodes are available: 4 Insufficient cpu."
    placement = "preemption: found a potential placement for pod on node n4, preempting 2 victims"
    assert said(V36, objects, pod) == lacking
    assert said(V37, objects, pod) == f"{lacking} {placement}"


# Preemption


def budget(name: str, allowed: int, **selector: str) -> PodDisruptionBudget:
    return build(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": selector}},
            "status": {"disruptionsAllowed": allowed},
        },
    )


def test_v7_a_pod_that_breaks_one_budget_leaves_the_others_their_allowance() -> None:
    """On n1, p1 breaks budget a and p2 is spared by b only if p1 did not use it up; on n2, one pod breaks a budget."""
    both = {"cpu": 2}
    objects = [
        *nodes({}, {}),
        budget("a", 0, app="x"),
        budget("b", 1, all="yes"),
        make_pod("p1", node="n1", priority=2, requests=both, labels={"app": "x", "all": "yes"}),
        make_pod("p2", node="n1", priority=1, requests=both, labels={"app": "y", "all": "yes"}),
        make_pod("q1", node="n2", priority=3, requests=both, labels={"app": "x"}),
        make_pod("q2", node="n2", priority=3, requests=both),
    ]
    pod = make_pod("urgent", priority=50, requests={"cpu": 4})
    chosen = [explained(rules, objects, pod).preemption for rules in (V36, V37)]
    assert [each.node for each in chosen if each] == ["n2", "n1"]


# Pods under resize


def resized(*containers: dict[str, Any], infeasible: bool = False, **pod: Any) -> Pod:
    """Containers with `spec`, and where the kubelet has said so `allocated` and `actual` cpu."""
    statuses: list[dict[str, Any]] = []
    initial: list[dict[str, Any]] = []
    for number, each in enumerate(containers):
        status: dict[str, Any] = {"name": f"c{number}"}
        if "allocated" in each:
            status["allocatedResources"] = {"cpu": each["allocated"]}
        if "actual" in each:
            status["resources"] = {"requests": {"cpu": each["actual"]}}
        (initial if each.get("init") else statuses).append(status)
    specs = [
        {"name": f"c{number}", "image": "a", "resources": {"requests": {"cpu": each["spec"]}}}
        for number, each in enumerate(containers)
    ]
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}] if infeasible else []
    return make_pod(
        spec={
            "containers": [spec for spec, each in zip(specs, containers, strict=True) if not each.get("init")],
            "initContainers": [spec for spec, each in zip(specs, containers, strict=True) if each.get("init")],
        },
        status={"containerStatuses": statuses, "initContainerStatuses": initial, "conditions": pending},
        **pod,
    )


GROWS = {"spec": "200m", "allocated": "100m", "actual": "100m"}
SHRINKS = {"spec": "100m", "allocated": "200m", "actual": "200m"}


@pytest.mark.parametrize(
    ("pod", "before", "since"),
    [
        pytest.param(resized(GROWS, SHRINKS), 400, 300, id="V8"),
        pytest.param(resized(GROWS, SHRINKS, infeasible=True), 300, 300, id="V9"),
        pytest.param(
            resized({"spec": "100m", "allocated": "50m"}, {"spec": "100m"}, infeasible=True), 200, 50, id="V10"
        ),
        pytest.param(resized({"spec": "50m"}, {"spec": "100m", "allocated": "900m", "init": True}), 100, 900, id="V12"),
        pytest.param(resized({"spec": "250m"}, {"spec": "100m"}), 350, 350, id="without a status"),
    ],
)
def test_what_a_pod_under_resize_occupies(pod: Pod, before: int, since: int) -> None:
    assert (requested(pod, by_sums=False)["cpu"], requested(pod)["cpu"]) == (before, since)


def test_v8_a_pod_that_waited_beside_a_resize_fits() -> None:
    objects = [make_node("n1", cpu="700m"), resized(GROWS, SHRINKS, node="n1", name="moving")]
    pod = make_pod("waiting", requests={"cpu": "400m"})
    assert said(V36, objects, pod).startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert explained(V37, objects, pod).selected == "n1"


def test_v11_a_resource_that_stands_in_the_pods_status_alone_replaces_the_sum_of_containers() -> None:
    pod = make_pod(
        requests={"memory": "1Gi"},
        spec={"resources": {"requests": {"cpu": 1}}},
        status={"resources": {"requests": {"cpu": 1, "memory": "2Gi"}}},
    )
    assert (requested(pod, by_sums=False)["memory"], requested(pod)["memory"]) == (2**30, 2 * 2**30)


# Volumes


def pools(**capacities: str) -> list[Any]:
    """A node for each capacity, which a driver reports for it alone."""
    reported = [
        make_capacity(name, capacity=size, topology={"matchLabels": {HOSTNAME: name}})
        for name, size in capacities.items()
    ]
    hosts = [make_node(name, labels={HOSTNAME: name}) for name in capacities]
    return [*hosts, *reported, make_class(), make_driver(capacity=True)]


def test_v13_the_node_whose_storage_stays_emptier_scores_higher() -> None:
    objects = [*pools(n1="100Gi", n2="25Gi"), make_claim("c", size="20Gi")]
    pod = make_pod(spec={"volumes": [claim_volume("c")]})
    assert scores(V37, objects, pod, "VolumeBinding") == {"n1": 80, "n2": 20}
    assert scores(V36, objects, pod, "VolumeBinding") == {}
    off = NEWEST.with_gates(NEWEST.gates - {Gate.STORAGE_CAPACITY_SCORING})
    assert scores(off, objects, pod, "VolumeBinding") == {}


def test_v14_existing_volumes_count_by_how_well_they_are_filled() -> None:
    local = make_class("local", provisioner="kubernetes.io/no-provisioner")
    volumes = [
        make_volume(f"pv-{name}", size=size, storage_class="local", affinity={HOSTNAME: [name]})
        for name, size in (("n1", "5Gi"), ("n2", "10Gi"))
    ]
    hosts = [make_node(name, labels={HOSTNAME: name}) for name in ("n1", "n2")]
    objects = [*hosts, local, *volumes, make_claim("c", size="4Gi", storage_class="local")]
    pod = make_pod(spec={"volumes": [claim_volume("c")]})
    assert scores(V37, objects, pod, "VolumeBinding") == {"n1": 20, "n2": 60}


def test_v15_claims_of_one_class_share_what_their_pool_has() -> None:
    objects = [*pools(n1="100Gi", n2="200Gi"), make_claim("a", size="50Gi"), make_claim("b", size="50Gi")]
    pod = make_pod(spec={"volumes": [claim_volume("a"), claim_volume("b")]})
    assert scores(V37, objects, pod, "VolumeBinding") == {"n1": 0, "n2": 50}


def test_v16_a_driver_that_reports_no_capacity_leaves_every_node_at_0() -> None:
    objects = [make_node("n1"), make_node("n2"), make_class(), make_claim("c", size="20Gi")]
    pod = make_pod(spec={"volumes": [claim_volume("c")]})
    assert scores(V37, objects, pod, "VolumeBinding") == {"n1": 0, "n2": 0}


def test_a_pod_without_volumes_gets_0_from_volume_binding_in_1_37() -> None:
    objects = [make_node("n1"), make_node("n2")]
    assert scores(V37, objects, make_pod(), "VolumeBinding") == {"n1": 0, "n2": 0}
    assert scores(V36, objects, make_pod(), "VolumeBinding") == {}


def test_v17_a_driver_may_keep_pods_from_nodes_that_do_not_have_it() -> None:
    volume = make_volume("pv", driver="csi.x", claim=make_claim("c", volume="pv"))
    driver = build(CSIDriver, {"metadata": {"name": "csi.x"}, "spec": {"preventPodSchedulingIfMissing": True}})
    objects = [driver, volume, make_claim("c", volume="pv"), make_class(), make_csi_node("n1", {"csi.x": None})]
    pod = make_pod(spec={"volumes": [claim_volume("c")]})
    both = [*nodes({}, {}), *objects]
    assert [each.name for each in explained(V37, both, pod).nodes if each.feasible] == ["n1"]
    assert [each.name for each in explained(V36, both, pod).nodes if each.feasible] == ["n1", "n2"]
    reason = "0/1 nodes are available: 1 csi.x CSI driver is not installed on the node. "
    assert said(V37, [make_node("n2"), *objects], pod) == f"{reason}{NOBODY.format(1)}"
    tolerant = build(CSIDriver, {"metadata": {"name": "csi.x"}, "spec": {}})
    assert explained(V37, [make_node("n2"), *objects[1:], tolerant], pod).selected == "n2"


# Affinity, images, names, balance


def test_v18_a_selector_that_excludes_reaches_no_more_than_it_chooses() -> None:
    labels = {"a": {"team": "x"}, "b": {"team": "y"}}
    spaces = [build(Namespace, {"metadata": {"name": name, "labels": each}}) for name, each in labels.items()]
    hosts = [make_node(name, labels={HOSTNAME: name}) for name in ("n1", "n2")]
    others = [
        make_pod("db", namespace=name, node=node, labels={"app": "db"}) for name, node in (("a", "n1"), ("b", "n2"))
    ]
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
    }
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = make_pod("p", namespace="a", spec={"affinity": anti})
    refused = [
        [each.name for each in explained(rules, [*hosts, *spaces, *others], pod).nodes if not each.feasible]
        for rules in (V36, V37)
    ]
    assert refused == [["n1", "n2"], ["n2"]]


@pytest.mark.parametrize(("rules", "score"), [(V35, 0), (V36, 59), (V37, 29)], ids=str)
def test_v19_image_volumes_raise_the_sum_from_1_36_and_the_limit_from_1_37_on(rules: VersionRules, score: int) -> None:
    objects = nodes(*({"images": {"model:1": 600 * MIB}} for _ in range(2)))
    spec = {"volumes": [{"name": "v", "image": {"reference": "model:1"}}]}
    assert set(scores(rules, objects, make_pod(spec=spec), "ImageLocality").values()) == {score}


def test_v33_a_pod_that_names_its_node_is_kept_to_it_before_the_filters() -> None:
    cluster, pod = make_cluster(nodes({}, {}, {}), filled("n1")), make_pod(requests={"cpu": 3}, node="n1")
    said = {}
    for rules in (V36, V37):
        runtime = make_runtime(cluster, default=True, rules=rules, handle=make_handle(cluster, rules))
        said[rules] = decide(runtime, cycle_of(runtime, pod), Sampling()).search.diagnosis().message
    other = "2 node(s) didn't match the requested node name"
    assert said[V36] == f"0/3 nodes are available: 1 Insufficient cpu, {other}."
    other = "2 node(s) didn't satisfy plugin(s) [NodeName]"
    assert said[V37] == f"0/3 nodes are available: 1 Insufficient cpu, {other}."


def test_the_balance_of_1_35_does_not_look_at_the_node_without_the_pod() -> None:
    objects = [make_node("n1", cpu=4, memory="4Gi"), make_node("n2", cpu=4, memory="4Gi")]
    pod = make_pod(requests={"cpu": 2, "memory": "1Gi"})
    name = "NodeResourcesBalancedAllocation"
    assert set(scores(V35, objects, pod, name).values()) == {int((1 - 0.25 / 2) * 100)}
    assert set(scores(V36, objects, pod, name).values()) == {50 + (50 + 87 - 100) // 2}


@pytest.mark.parametrize(("rules", "fits"), [(V36, True), (V37, False)], ids=str)
def test_v41_options_of_bind_mounts_need_a_node_that_declares_them(rules: VersionRules, fits: bool) -> None:
    mount = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
    spec = {"containers": [{"name": "c", "image": "a", "volumeMounts": [mount]}]}
    found = explained(rules, [make_node("n1")], make_pod(spec=spec))
    assert (found.selected == "n1") is fits
    assert fits or "1 node(s) didn't match Pod's required features." in (found.message or "")
    able = make_node("n2", features=["VolumeBindMountOptions"])
    assert explained(rules, [able], make_pod(spec=spec)).selected == "n2"


@pytest.mark.parametrize("rules", KNOWN.values(), ids=str)
def test_an_explanation_says_by_which_rules_it_was_made(rules: VersionRules) -> None:
    assert explained(rules, [make_node()], make_pod()).to_data()["kubernetesVersion"] == str(rules)


# What wakes a pod


@pytest.mark.parametrize(("rules", "queue"), [(V36, "backoff"), (V37, "unschedulable")], ids=str)
def test_v34_a_change_of_taints_does_not_wake_a_pod_that_lacks_resources(rules: VersionRules, queue: str) -> None:
    tainted = make_node("n1", cpu=1, taints=[{"key": "a", "effect": "PreferNoSchedule"}])
    world = World(default=True, nodes=[tainted], rules=rules)
    world.attempt(make_pod(requests={"cpu": 3}))
    world.add(make_node("n1", cpu=1))
    assert world.queued().queue == queue


@pytest.mark.parametrize(
    ("rules", "event"),
    [(V36, "UnschedulablePodUpdatePodLabel"), (V37, "TargetPodUpdatePodLabel")],
    ids=str,
)
def test_v35_the_pod_that_changed_itself_is_the_target_pod_of_the_event(rules: VersionRules, event: str) -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "db"}}}
    near = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    clock = ManualClock(1_000_000.0)
    metrics = Metrics(clock, now=lambda: 0.0)
    node = make_node("n1", labels={HOSTNAME: "n1"})
    world = World(default=True, nodes=[node], rules=rules, timer=metrics.timer, clock=clock)
    world.attempt(make_pod(spec=near))
    world.add(make_pod(spec=near, labels={"app": "db"}))
    metrics.attach(world.scheduler)
    assert f'event="{event}"' in metrics.render().decode()


@pytest.mark.parametrize(("rules", "queue"), [(V36, "unschedulable"), (V37, "backoff")], ids=str)
def test_v36_a_pod_that_leaves_need_match_one_anti_affinity_term_only(rules: VersionRules, queue: str) -> None:
    terms = [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {each: "yes"}}} for each in ("a", "b")]
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    other = make_pod("other", node="n1", labels={"a": "yes"})
    world = World(default=True, nodes=[make_node("n1", labels={HOSTNAME: "n1"})], rules=rules)
    world.add(other)
    world.attempt(make_pod(spec=apart))
    world.delete(other)
    assert world.queued().queue == queue


@pytest.mark.parametrize(("rules", "victim"), [(V36, "old-0"), (V37, "old-2")], ids=str)
def test_of_equal_victims_that_have_not_started_the_last_goes_first(rules: VersionRules, victim: str) -> None:
    world = World(default=True, nodes=[make_node("n1", cpu=3)], rules=rules)
    world.add(*(make_pod(f"old-{number}", node="n1", requests={"cpu": 1}) for number in range(3)))
    world.attempt(make_pod("new", requests={"cpu": 1}, priority=9))
    assert world.evicted == [victim]


@pytest.mark.parametrize(("rules", "node"), [(V36, "n1"), (V37, None)], ids=str)
def test_v38_the_room_of_a_gated_pod_that_is_nominated_is_kept(rules: VersionRules, node: str | None) -> None:
    one = {"cpu": 1}
    world = World(default=True, nodes=[make_node("n1", cpu=1)], rules=rules)
    gated = {"schedulingGates": [{"name": "later"}]}
    world.add(make_pod("p", priority=10, requests=one, spec=gated, status={"nominatedNodeName": "n1"}))
    world.attempt(make_pod("q", requests=one))
    assert world.node_of("q") == node
