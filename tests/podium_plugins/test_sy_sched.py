"""SySched: which system calls a pod may use, and what a node's pods would open to each other."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.config.field import FieldPath
from podium.framework import SKIP, Cycle
from podium.framework.object_problems import ObjectProblems
from podium.kube import Pod
from podium_plugins.sy_sched import ANNOTATION, RESOURCE, SySched, SySchedArgs, references
from tests.podium.plugins.ask import raw_scores, scores
from tools.kit.builders import make_cluster, make_handle, make_node, make_plugin, make_pod


def profile(*calls: str, action: str = "SCMP_ACT_ALLOW") -> dict[str, Any]:
    return {
        "apiVersion": "security-profiles-operator.x-k8s.io/v1beta1",
        "kind": "SeccompProfile",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"action": action, "names": list(calls)}]},
    }


def set_profile(cluster: Cluster, name: str, item: Any) -> None:
    cluster.objects.custom_store(RESOURCE).set(f"default/{name}", item)


def localhost(name: str) -> dict[str, Any]:
    path = f"operator/default/{name}.json"
    return {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": path}}}


def confined(name: str, profile_name: str = "", node: str = "", **rest: Any) -> Pod:
    return make_pod(name, node=node, spec=localhost(profile_name) if profile_name else {}, **rest)


def example() -> Cluster:
    cluster = make_cluster(
        [make_node("Node1"), make_node("Node2"), make_node("Node3")],
        [confined("q1", "abc", "Node1"), confined("q2", "xy", "Node2")],
    )
    for calls in ("abc", "xy", "bcd"):
        set_profile(cluster, calls, profile(*calls))
    return cluster


def test_the_example_of_the_specification() -> None:
    cluster = example()
    plugin, pod = make_plugin(SySched, cluster), confined("new", "bcd")
    assert raw_scores(plugin, pod, cluster) == {"Node1": 2, "Node2": 5, "Node3": 0}
    assert scores(plugin, pod, cluster) == {"Node1": 60, "Node2": 0, "Node3": 100}


def test_a_cluster_without_pods_is_all_the_same() -> None:
    cluster = make_cluster([make_node("a"), make_node("b")])
    set_profile(cluster, "abc", profile(*"abc"))
    assert scores(make_plugin(SySched, cluster), confined("new", "abc"), cluster) == {"a": 100, "b": 100}


def test_a_pod_of_which_nothing_is_known_is_not_scored() -> None:
    cluster = example()
    plugin = make_plugin(SySched, cluster)
    assert plugin.pre_score(Cycle(make_pod("new"), cluster), Nodes(cluster)) is SKIP
    set_profile(cluster, "all-syscalls", profile(*"abcxyz"))
    assert plugin.pre_score(Cycle(make_pod("new"), cluster), Nodes(cluster)) is None


def test_pods_without_a_profile_have_the_default_one() -> None:
    cluster = make_cluster([make_node("a"), make_node("b")], [make_pod("q", node="a")])
    set_profile(cluster, "mine", profile(*"abc"))
    plugin = make_plugin(SySched, cluster, defaultProfileName="mine")
    assert raw_scores(plugin, make_pod("new"), cluster) == {"a": 0, "b": 0}
    set_profile(cluster, "ab", profile(*"ab"))
    assert raw_scores(plugin, confined("new", "ab"), cluster) == {"a": 1, "b": 0}


def test_a_changed_profile_counts_for_pods_that_run() -> None:
    cluster = example()
    plugin, pod = make_plugin(SySched, cluster), confined("new", "bcd")
    before = plugin.answer_key(pod)
    assert raw_scores(plugin, pod, cluster)["Node2"] == 5
    set_profile(cluster, "xy", profile(*"bcd"))
    assert plugin.answer_key(pod) != before
    assert raw_scores(plugin, pod, cluster)["Node2"] == 0
    cluster.objects.custom_store(RESOURCE).discard("default/xy")
    assert raw_scores(plugin, pod, cluster)["Node2"] == 3  # nothing is known of the pod there


def test_two_pods_of_one_name_are_two_and_pods_that_end_do_not_count() -> None:
    cluster = example()
    plugin, pod = make_plugin(SySched, cluster), confined("new", "bcd")
    cluster.set_pod(confined("q1", "abc", "Node1", namespace="other"))
    assert raw_scores(plugin, pod, cluster)["Node1"] == 3
    for uid in ("other-q1", "default-q1"):
        cluster.remove_pod(uid)
    assert raw_scores(plugin, pod, cluster)["Node1"] == 0


def test_only_calls_that_are_let_through_count() -> None:
    cluster = example()
    set_profile(cluster, "bcd", profile(*"bcd", action="SCMP_ACT_ERRNO"))
    plugin = make_plugin(SySched, cluster)
    assert plugin.pre_score(Cycle(confined("new", "bcd"), cluster), Nodes(cluster)) is SKIP
    set_profile(cluster, "bcd", profile(*"bcd", action="SCMP_ACT_LOG"))
    assert raw_scores(plugin, confined("new", "bcd"), cluster)["Node1"] == 2


REFERENCES: list[tuple[str, Pod, list[str]]] = [
    ("none", make_pod(), []),
    ("of the pod", confined("p", "one"), ["default/one"]),
    (
        "of a container",
        make_pod(spec={"containers": [{"name": "a", **localhost("one")}, {"name": "b", **localhost("two")}]}),
        ["default/one", "default/two"],
    ),
    ("not of an init container", make_pod(spec={"initContainers": [{"name": "a", **localhost("one")}]}), []),
    (
        "another type",
        make_pod(spec={"securityContext": {"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "a/b.c"}}}),
        [],
    ),
    (
        "by annotation, the first by key",
        make_pod(
            metadata={
                "annotations": {f"{ANNOTATION}/pod": "localhost/ns/b.json", f"container.{ANNOTATION}/c": "ns/a.json"}
            }
        ),
        ["ns/a"],
    ),
    ("a path of one component", make_pod(metadata={"annotations": {f"{ANNOTATION}/pod": "unconfined"}}), []),
    ("no extension", make_pod(metadata={"annotations": {f"{ANNOTATION}/pod": "ns/name"}}), ["ns/name"]),
]


@pytest.mark.parametrize(("pod", "expected"), [case[1:] for case in REFERENCES], ids=[case[0] for case in REFERENCES])
def test_references(pod: Pod, expected: list[str]) -> None:
    assert list(references(pod)) == expected


def test_profiles_that_are_missing_or_wrong_are_reported_once_and_left_out() -> None:
    reports: list[str] = []
    cluster = example()
    handle = make_handle(cluster)
    handle.report = reports.append
    handle.problems = ObjectProblems(reports.append)
    set_profile(cluster, "bad", {"spec": {"syscalls": [{"names": "read"}]}})
    plugin = SySched(SySchedArgs(), handle)
    for name in ("a", "b"):
        both = {
            "containers": [{"name": "c", **localhost("gone")}, {"name": "d", **localhost("bad")}],
            **localhost("bcd"),
        }
        assert raw_scores(plugin, make_pod(name, spec=both), cluster)["Node1"] == 2
    assert reports == [
        "SeccompProfile default/bad: Expected `array`, got `str` - at `$.spec.syscalls[0].names`; it counts as not "
        "there until that is put right",
        "SeccompProfile default/gone: not found, or not readable; pods that refer to it do without it",
    ]


def test_arguments() -> None:
    found = [str(error) for error in msgspec.convert({"defaultProfileName": ""}, SySchedArgs).validate(FieldPath())]
    assert found == ["defaultProfileName: Required value: name the SeccompProfile of pods that refer to none"]
    assert SySchedArgs() == SySchedArgs(default_profile_namespace="default", default_profile_name="all-syscalls")


SETS = st.lists(st.sampled_from("abcde"), max_size=5, unique=True).map("".join)


@settings(deadline=None)
@given(st.lists(st.lists(SETS, max_size=4), min_size=1, max_size=4), SETS.filter(bool))
def test_both_forms_give_what_the_formula_says(nodes: list[list[str]], own: str) -> None:
    placed = [
        confined(f"q{number}-{i}", f"set-{calls}", f"n{number}")
        for number, sets in enumerate(nodes)
        for i, calls in enumerate(sets)
    ]
    cluster = make_cluster([make_node(f"n{number}") for number in range(len(nodes))], placed)
    for calls in {own, *(calls for sets in nodes for calls in sets)}:
        set_profile(cluster, f"set-{calls}", profile(*calls))
    plugin = make_plugin(SySched, cluster)
    mine = set(own)
    expected = {}
    for number, sets in enumerate(nodes):
        host = {call for calls in sets for call in calls}
        expected[f"n{number}"] = len(host - mine) + sum(len((host | mine) - set(calls)) for calls in sets)
    assert raw_scores(plugin, confined("new", f"set-{own}"), cluster) == expected
