"""The worked numbers of the specification, on the sample cluster under the default profile."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podium.config.load import default_config
from podium.kube import KubeObject, decode_documents
from podium.kube.admission import as_admitted
from podium.kube.versions import find_rules
from podium.plugins import load_registry
from podium.whatif.capacity import CapacityAnswer, Template, capacity
from podium.whatif.changes import change_of
from podium.whatif.drain import DrainRules
from podium.whatif.drain_each import drain_each
from podium.whatif.fit import FitAnswer, fit
from podium.whatif.manifests import read_given
from podium.whatif.sandbox import Sandbox
from tools.kit.builders import make_pod

SAMPLE = Path(__file__).parents[3] / "src/podium/samples/cluster.yaml"
REGISTRY = load_registry()
CONFIG = default_config(REGISTRY, find_rules("1.36").rules)


def sample() -> list[KubeObject]:
    return as_admitted(decode_documents(SAMPLE.read_text(), "cluster.yaml").objects)


def sandbox(objects: Sequence[Any] | None = None) -> Sandbox:
    return Sandbox(sample() if objects is None else objects, CONFIG, REGISTRY)


def how_many(**pod: Any) -> CapacityAnswer:
    return capacity(sandbox(), [Template(make_pod("cap", **pod))])


def shares(answer: CapacityAnswer) -> dict[str, int]:
    return {each.node: each.replicas for each in answer.record().nodes}


def reasons(answer: CapacityAnswer) -> set[tuple[int, str]]:
    stop = answer.record().stop
    assert stop is not None
    return {(each.nodes, each.reason) for each in stop.reasons}


def asked(*changes: str, given: str = "", **options: Any) -> FitAnswer:
    pairs = [change_of(*each.split(" ", 1)) for each in changes]
    return fit(sandbox(), pairs, read_given([(given, "given.yaml")]) if given else None, **options)


def nodes_of(answer: FitAnswer) -> dict[str, str | None]:
    return {each.pod.name: each.after.node for each in answer.pods}


def test_half_a_core_and_a_gibibyte_fit_sixteen_times_and_cpu_binds_first() -> None:
    answer = how_many(requests={"cpu": "500m", "memory": "1Gi"})
    record = answer.record()
    assert (record.replicas, record.bound, record.reached) == (16, 16, "full")
    assert list(shares(answer).items()) == [
        ("worker-c3", 4), ("worker-b2", 3), ("worker-c1", 3), ("worker-a1", 2), ("worker-a2", 2), ("worker-b1", 2),
    ]  # fmt: skip
    assert reasons(answer) == {
        (1, "node(s) had untolerated taint(s)"), (1, "node(s) were unschedulable"), (6, "Insufficient cpu"),
    }  # fmt: skip
    assert record.stop is not None
    assert record.stop.first == "cpu"
    assert record.stop.message is not None
    assert record.stop.message.startswith(
        "0/8 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 6 Insufficient cpu."
    )
    c3 = next(each for each in record.nodes if each.node == "worker-c3")
    assert c3.left_over["cpu"] == "410m"
    assert {"worker-c3": ["90m more cpu"]}.items() <= {each.node: each.changes for each in record.one_more}.items()


def test_a_core_and_four_gibibytes_fit_six_times_and_a_node_may_lack_both() -> None:
    answer = how_many(requests={"cpu": "1", "memory": "4Gi"})
    assert shares(answer) == {"worker-c3": 2, "worker-a1": 1, "worker-b1": 1, "worker-b2": 1, "worker-c1": 1}
    assert {(3, "Insufficient memory"), (5, "Insufficient cpu")} <= reasons(answer)


def test_pods_that_keep_apart_fit_once_on_each_open_worker() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "cap"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    answer = how_many(requests={"cpu": "500m", "memory": "1Gi"}, labels={"app": "cap"}, spec={"affinity": apart})
    assert (answer.replicas, answer.bound, set(answer.on.values())) == (6, None, {1})
    assert (6, "node(s) didn't match pod anti-affinity rules") in reasons(answer)


def test_a_pod_without_requests_stops_at_the_pod_slots() -> None:
    answer = how_many(requests={})
    assert (answer.replicas, answer.bound) == (6 * 58 - 16, 6 * 58 - 16)
    assert answer.record().stop.first == "pods"  # type: ignore[union-attr]


def test_the_first_drain_moves_every_pod() -> None:
    assert nodes_in(asked("--drain worker-a1")) == {"dns-1": "worker-b1", "web-1": "worker-a2", "report-1": "worker-c3"}


def nodes_in(answer: FitAnswer) -> dict[str, str | None]:
    assert answer.drained is not None
    found = {}
    for each in answer.drained.pods:
        found[each.pod.name] = None if each.placement is None else each.placement.node
    return found


def test_drained_in_sequence_two_pods_of_worker_b2_find_no_place() -> None:
    answer = asked("--drain worker-b2")
    assert nodes_in(answer) == {"api-1": "worker-c3", "api-2": None, "report-3": None}
    assert not answer.yes
    verdicts = {each.pod: (each.verdict, each.after.message) for each in answer.record().pods}
    verdict, message = verdicts["shop/api-2"]
    assert verdict == "noPlace"
    assert isinstance(message, str)
    assert message.startswith(
        "0/8 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), "
        "2 node(s) were unschedulable, 5 Insufficient cpu."
    )


def test_one_at_a_time_each_of_them_fits_elsewhere() -> None:
    for name in ("api-1", "api-2", "report-3"):
        selected = {"api-1": "app=api", "api-2": "app=api", "report-3": "app=report"}[name]
        state = sandbox()
        for pod in [pod for pod in state.pods_on("worker-b2") if pod.name != name]:
            state.set(pod)
        answer = fit(state, [change_of("--drain", "worker-b2")], drain_rules=DrainRules(pod_selector=selected))
        first = next(iter(nodes_in(answer).values()))
        assert first == "worker-c3"


def test_a_drain_of_worker_c3_moves_the_report_only() -> None:
    assert nodes_in(asked("--drain worker-c3")) == {"report-4": "worker-b2", "api-3": None, "search-0": None}


def test_each_node_alone_is_a_table_of_what_blocks() -> None:
    record = drain_each(sandbox()).record()
    blocked = {each.node: [blocker.pod for blocker in each.blocked_by] for each in record.nodes if each.blocked_by}
    assert blocked == {"worker-b2": ["shop/api-2", "analytics/report-3"], "worker-c3": ["shop/api-3", "shop/search-0"]}


def test_as_things_are_one_of_the_three_that_wait_fits() -> None:
    answer = asked()
    assert nodes_of(answer) == {"web-4": "worker-b2", "checkout": None, "training": None}
    assert {each.pod.name: each.verdict for each in answer.pods} == {
        "web-4": "fits", "checkout": "blocked", "training": "blocked",
    }  # fmt: skip


def test_uncordoning_a_node_that_is_tainted_as_well_changes_nothing_but_the_message() -> None:
    before, after = asked(), asked("--uncordon worker-c2")
    assert nodes_of(before) == nodes_of(after)
    message = next(each.after.message for each in after.pods if each.pod.name == "checkout")
    assert message is not None
    assert "2 node(s) had untolerated taint(s)" in message


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: big}
spec:
  replicas: 4
  selector: {matchLabels: {app: big}}
  template:
    metadata: {labels: {app: big}}
    spec: {containers: [{name: c, image: app, resources: {requests: {cpu: 1500m}}}]}
"""
QUOTA = """
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: default}
spec: {hard: {requests.cpu: "3"}}
status: {hard: {requests.cpu: "3"}, used: {requests.cpu: "0"}}
"""


def test_each_given_pod_counts_for_the_next() -> None:
    answer = asked(given=DEPLOYMENT)
    found = [each.after.node for each in answer.pods]
    assert (len(found), len(set(found)), found.count(None)) == (4, 4, 1)
    assert not answer.yes


def test_a_quota_of_the_namespace_refuses_and_is_named() -> None:
    answer = asked(given=DEPLOYMENT + QUOTA)
    assert [each.verdict for each in answer.pods].count("quota") == 2
    remedies = [each.after.remedies for each in answer.pods if each.verdict == "quota"]
    amount = "1500m more requests.cpu in ResourceQuota default/small"
    assert all(remedies)
    assert all(each.changes[0] == amount for found in remedies for each in found)
    message = next(each.after.message for each in answer.pods if each.verdict == "quota")
    assert (
        message == "exceeded quota: small, requested: requests.cpu=1500m, used: requests.cpu=3, limited: requests.cpu=3"
    )


def test_what_preemption_would_do_stands_beside_and_is_played_where_asked() -> None:
    checkout = next(each for each in asked().pods if each.pod.name == "checkout")
    assert checkout.after.eviction is not None
    assert (checkout.after.fits, checkout.after.eviction.victims) == (False, ["analytics/report-3"])
    played = asked(preempt=True)
    found = {each.pod.name: (each.origin, each.after.node) for each in played.pods}
    assert found["checkout"] == ("pending", "worker-b2")
    assert found["report-3"][0] == "victim"


def test_a_question_leaves_no_trace() -> None:
    state = sandbox()
    before = (state.cluster.resources._lines.view.tobytes(), sorted(state.cluster.pods), list(state.cluster.row_of))
    fit(state, [change_of("--drain", "worker-b2"), change_of("--add-nodes", "2=like:worker-c3")])
    capacity(state, [Template(make_pod("cap"))], limit=30)
    lines = state.cluster.resources._lines.view[:, : len(before[2])]
    after = (lines.tobytes(), sorted(state.cluster.pods), list(state.cluster.row_of))
    assert after == before
