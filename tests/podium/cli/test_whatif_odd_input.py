"""Odd input of `podium whatif` and `podium capacity`: taken names, numbers beyond reason, values nobody can read."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.podium.cli.command import podium
from tests.podium.cli.texts import SAMPLE, documents, node, pod, requesting, write

TAKEN = ("shop/web-1", "shop/web-2", "shop/web-3", "shop/web-4")
"""Pods of the sample, which all belong to ReplicaSet web."""


def answer(*words: str) -> Any:
    ran = podium(*words, "--kubernetes-version", "1.36", "-o", "json")
    assert ran.code in (0, 1), ran.err
    return json.loads(ran.out)["answer"]


def sentence(*words: str) -> str:
    ran = podium(*words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    return ran.err.strip()


def workload(kind: str, name: str, replicas: int, cpu: str = "100m") -> str:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "shop"}
    return json.dumps({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})


def names_of(found: Any) -> list[str]:
    return [each["pod"] for each in found["pods"]]


def test_replicas_of_a_pod_get_names_that_no_pod_of_the_cluster_has(tmp_path: Path) -> None:
    web = write(tmp_path, "web.yaml", pod("web", spec=requesting("500m"), namespace="shop"))
    other = write(tmp_path, "other.yaml", pod("other", spec=requesting("500m"), namespace="shop"))
    found, same = (answer("capacity", "-f", file, "--from", SAMPLE) for file in (web, other))
    assert found["replicas"] == same["replicas"] == 16
    assert found["nodes"] == same["nodes"]
    given = answer("whatif", "-f", web, "--replicas", "3", "--from", SAMPLE)
    assert names_of(given) == ["shop/web-0", "shop/web-5", "shop/web-6"]
    unnamed = pod("web", namespace="shop").replace("name: web", "generateName: web-")
    file = write(tmp_path, "unnamed.yaml", documents(unnamed, unnamed))
    assert names_of(answer("whatif", "-f", file, "--from", SAMPLE)) == ["shop/web-0", "shop/web-5"]


def test_a_given_pod_counts_instead_of_the_one_of_its_name(tmp_path: Path) -> None:
    dump = write(tmp_path, "dump.yaml", documents(node("n1"), pod("web", spec=requesting("3", "nodeName: n1"))))
    web = write(tmp_path, "web.yaml", pod("web", spec=requesting("3")))
    assert podium("whatif", "-f", web, "--from", dump).code == 0
    assert podium("whatif", "-f", web, "--replicas", "2", "--from", dump).code == 1


def test_templates_of_one_name_share_no_replica(tmp_path: Path) -> None:
    web = write(tmp_path, "web.yaml", pod("web", spec=requesting("500m"), namespace="shop"))
    found = answer("capacity", "--mix", f"1:{web}", "--mix", f"2:{web}", "--from", SAMPLE)
    assert (found["replicas"], [each["replicas"] for each in found["templates"]]) == (16, [6, 10])


def test_a_share_of_a_billion_costs_no_memory(tmp_path: Path) -> None:
    web = write(tmp_path, "web.yaml", pod("web", spec=requesting("500m")))
    assert answer("capacity", "--mix", f"1000000000:{web}", "--from", SAMPLE)["replicas"] == 16


def test_pods_that_a_scaled_workload_gets_differ_from_those_given(tmp_path: Path) -> None:
    web = write(tmp_path, "web.yaml", pod("web", spec=requesting("100m"), namespace="shop"))
    scaled = ("--scale", "shop/Deployment/web=6", "--from", SAMPLE)
    found = names_of(answer("whatif", "-f", web, "--replicas", "3", *scaled))
    assert len(set(found)) == len(found) == 5
    assert not set(found) & set(TAKEN)
    twice = names_of(answer("whatif", "--scale", "shop/Deployment/web=8", *scaled))
    once = names_of(answer("whatif", *scaled))
    assert len(twice) == len(set(twice)) == len(once), "the second number counts"


def test_a_workload_that_shares_its_name_leaves_other_pods_where_they_are(tmp_path: Path) -> None:
    dump = write(tmp_path, "dump.yaml", documents(node("n1"), pod("job-0", spec=requesting("3", "nodeName: n1"))))
    whole = workload("Deployment", "job", 1, cpu="2").replace("shop", "default")
    assert podium("whatif", "-f", write(tmp_path, "job.json", whole), "--from", dump).code == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (documents(pod("a"), pod("a")), "Pod default/a is given twice; "),
        (pod("a").replace("name: a", "labels: {}"), "a Pod has no name; write metadata.name"),
        (workload("Deployment", "w", -2), "Deployment shop/w: -2 pods cannot be; "),
        (workload("Deployment", "w", 0), "Deployment shop/w: it asks for no pods; say how many with --replicas"),
        (workload("ReplicaSet", "w", 10**12), "ReplicaSet shop/w: 1000000000000 pods: more than this command counts; "),
    ],
)
def test_pods_that_cannot_be_are_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    assert said in sentence("whatif", "-f", write(tmp_path, "given.yaml", text), "--from", SAMPLE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--add-nodes", "99999999999=like:worker-a1"), "more than this command counts; ask for at most 100000"),
        (("--add-nodes", "9" * 5000 + "=big"), "write --add-nodes"),
        (("--scale", "shop/deployment/web=2000000"), "more than this command counts; ask for at most 1000000"),
        (("--scale", "shop/deployment/web=" + "9" * 5000), "write --scale"),
        (("--set", "node/worker-a1.status.allocatable.cpu=x"), 'status.allocatable.cpu: quantity "x" cannot be read'),
    ],
)
def test_numbers_beyond_reason_are_one_sentence(words: tuple[str, str], said: str) -> None:
    assert said in sentence("whatif", *words, "--from", SAMPLE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {change: scale, workload: x, replicas: 1}", "--scale x=1: write NAMESPACE/KIND/NAME=N"),
        ("- {change: scale, workload: shop/deployment/web, replicas: -3}", "web=-3: write NAMESPACE/KIND/NAME=N"),
        ("- {change: set, object: node/worker-a1, path: status.allocatable.cpu, value: .nan}", "cannot be read"),
    ],
)
def test_a_change_of_a_document_that_cannot_be_made_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    assert said in sentence("whatif", "--change", write(tmp_path, "change.yaml", text), "--from", SAMPLE)


def refused_by_quota(folder: Path, cpu: int, *more: str) -> Any:
    """A pod of 3 cpu where the quota leaves 1."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"cpu": "1"}},
    }
    dump = write(folder, "dump.yaml", documents(node("n1", cpu=cpu), f"\n{json.dumps(quota)}\n", *more))
    file = write(folder, "given.yaml", pod("web", spec=requesting("3")))
    (found,) = answer("whatif", "-f", file, "--from", dump)["pods"]
    assert found["verdict"] == "quota"
    return [each["changes"] for each in found["remedies"]]


def test_a_quota_and_a_node_that_both_lack_room_are_one_remedy(tmp_path: Path) -> None:
    in_quota = "2 more cpu in ResourceQuota default/q"
    assert refused_by_quota(tmp_path, 4) == [[in_quota]]
    assert refused_by_quota(tmp_path, 2) == [[in_quota, "1 more cpu (asks for 3, 2 of 2 free)"]]


def test_no_amount_is_named_where_a_limit_range_refuses_all_the_same(tmp_path: Path) -> None:
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]},
    }
    assert refused_by_quota(tmp_path, 4, f"\n{json.dumps(limits)}\n") == []
