"""The ledger: what is used is the sum over placed pods, whatever came and went, in earnest and in dry runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.framework.object_problems import ObjectProblems
from podium.kube.requests import requested
from podium_plugins.capacity_scheduling import CapacityScheduling
from podium_plugins.capacity_scheduling.admission import QuotaAnswer
from podium_plugins.capacity_scheduling.ledger import QuotaLedger
from podium_plugins.capacity_scheduling.quota import RESOURCE, QuotaAmounts
from tests.together.quota_worlds import QuotaWorld, make_quota, quota_pod
from tools.kit.builders import make_cluster, make_node
from tools.kit.effort import examples

NAMESPACES = ("q1", "q2", "none")
REQUESTS: list[dict[str, Any]] = [{}, {"cpu": "250m"}, {"cpu": 1, "memory": "1Gi"}, {"x.io/gpu": 2, "cpu": "1500m"}]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("bound"), st.integers(0, 5), st.sampled_from(REQUESTS), st.sampled_from(("n1", "n2"))),
        st.tuples(st.just("assume"), st.integers(0, 5), st.sampled_from(REQUESTS), st.sampled_from(("n1", "n2"))),
        st.tuples(st.just("gone"), st.integers(0, 5), st.just({}), st.just("")),
        st.tuples(st.just("dry run"), st.integers(0, 5), st.just({}), st.just("")),
        st.tuples(st.just("quota"), st.integers(0, 2), st.sampled_from([{}, {"cpu": 1}, {"cpu": -1}]), st.just("")),
        st.tuples(st.just("no quota"), st.integers(0, 2), st.just({}), st.just("")),
    ),
    max_size=30,
)


def used(ledger: QuotaLedger, namespace: str) -> dict[str, int]:
    use = ledger._uses.get(namespace)
    return {} if use is None else nonzero(use.used)


def nonzero(amounts: QuotaAmounts) -> dict[str, int]:
    return {name: amount for name, amount in amounts.named().items() if amount}


def sum_over_pods(cluster: Cluster, namespace: str) -> dict[str, int]:
    total: Counter[str] = Counter()
    for placed in cluster.pods.values():
        if placed.pod.namespace == namespace:
            total.update(requested(placed.pod))
    return {name: amount for name, amount in total.items() if amount}


@settings(max_examples=examples(150), deadline=None)
@given(steps)
def test_what_is_used_is_the_sum_over_placed_pods_after_any_sequence(sequence: list[Any]) -> None:
    cluster = make_cluster([make_node("n1"), make_node("n2")])
    problems = ObjectProblems(lambda _message: None)
    ledger = QuotaLedger.of(cluster, problems)
    assert QuotaLedger.of(cluster, problems) is ledger
    quotas = cluster.objects.custom_store(RESOURCE)
    for what, number, amounts, node in sequence:
        namespace = NAMESPACES[number % 3]
        pod = quota_pod(f"p{number}", namespace, requests=amounts, node=node)
        placed = cluster.pods.get(pod.uid)
        if what == "bound":
            cluster.set_pod(pod)
        elif what == "assume" and placed is None:
            cluster.assume(pod, node)
        elif what == "gone" and placed is not None:
            (cluster.forget if placed.assumed else cluster.remove_pod)(pod.uid)
        elif what == "dry run" and placed is not None:
            with cluster.dry_run():
                cluster.take_off(placed)
                cluster.put_on(placed)
        elif what == "quota":
            quotas.set(f"{namespace}/q", make_quota(namespace, amounts))
        elif what == "no quota":
            quotas.discard(f"{namespace}/q")
    for namespace in NAMESPACES:
        assert used(ledger, namespace) == sum_over_pods(cluster, namespace)
    within = [namespace for namespace, _use in ledger.with_quota()]
    together: Counter[str] = Counter()
    for namespace in within:
        together.update(sum_over_pods(cluster, namespace))
    assert nonzero(ledger.total_used) == dict(together)
    assert len(ledger._uses) == len({*within, *_in_use(cluster), *_unusable(ledger)}), "no trace of empty namespaces"


def _in_use(cluster: Cluster) -> set[str]:
    return {placed.pod.namespace for placed in cluster.pods.values()}


def _unusable(ledger: QuotaLedger) -> set[str]:
    return {namespace for namespace in NAMESPACES if ledger.unusable(namespace) is not None}


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(NAMESPACES), st.integers(1, 4), st.integers(0, 3), st.sampled_from(("n1", "n2"))),
        max_size=8,
    ),
    st.sampled_from(NAMESPACES),
    st.integers(1, 6),
)
def test_preemption_leaves_no_trace_in_the_ledger(pods: list[Any], namespace: str, cpu: int) -> None:
    found = QuotaWorld(nodes={"n1": 8, "n2": 8})
    found.set_quota("q1", {"cpu": 4}, {"cpu": 8})
    found.set_quota("q2", {"cpu": 6}, {"cpu": 7})
    for number, (owner, size, priority, node) in enumerate(pods):
        found.add(quota_pod(f"p{number}", owner, size, node=node, priority=priority))
    ledger = found.plugin._ledger
    before = [used(ledger, each) for each in NAMESPACES], nonzero(ledger.total_used)
    found.attempt(quota_pod("preemptor", namespace, cpu, priority=2))
    if not found.bound:
        assert ([used(ledger, each) for each in NAMESPACES], nonzero(ledger.total_used)) == before


BOUNDS = {"q1": (4, 8), "q2": (6, 7)}

lives = st.lists(
    st.tuples(st.sampled_from(("q1", "q2")), st.integers(1, 4), st.integers(0, 3), st.booleans()), max_size=25
)


def most_used(life: list[Any]) -> list[str]:
    """Let pods come and, some of them, end; gives each bound that was exceeded."""
    found = QuotaWorld(nodes={"n1": 8, "n2": 8})
    for namespace, (least, most) in BOUNDS.items():
        found.set_quota(namespace, {"cpu": least}, {"cpu": most})
    exceeded: list[str] = []
    for number, (namespace, cpu, priority, ends) in enumerate(life):
        found.add(quota_pod(f"p{number}", namespace, cpu, priority=priority))
        while found.scheduler.schedule_one() is not None:
            used_now = {each: sum_over_pods(found.cluster, each).get("cpu", 0) // 1000 for each in BOUNDS}
            exceeded += [each for each, (_least, most) in BOUNDS.items() if used_now[each] > most]
            exceeded += ["all"] * (sum(used_now.values()) > sum(least for least, _most in BOUNDS.values()))
        if ends and found.cluster.pods:
            found.delete(next(iter(found.cluster.pods.values())).pod)
        for name in found.evicted:
            found.delete(*(placed.pod for placed in list(found.cluster.pods.values()) if placed.pod.name == name))
        found.evicted.clear()
        found.pass_time(20)
    return exceeded


@settings(max_examples=examples(60), deadline=None)
@given(lives)
def test_no_quota_is_ever_exceeded(life: list[Any]) -> None:
    assert most_used(life) == []


def test_a_scheduler_that_does_not_look_exceeds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CapacityScheduling, "_answer", lambda _plugin, _pod: QuotaAnswer.WITHIN)
    assert {*most_used([("q1", 4, 0, False)] * 3), *most_used([("q2", 4, 0, False)] * 3)} == {"q1", "q2", "all"}
