"""Which pod is meant: by its name, by kubectl's TYPE/NAME, or by its workload's name."""

import pytest

from tests.podium.cli.command import podium
from tests.podium.cli.texts import documents, node


def owned(name: str, kind: str, owner: str, namespace: str = "shop", spec: str = "") -> str:
    return (
        f"\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: {namespace}\n"
        f"  ownerReferences: [{{apiVersion: v1, kind: {kind}, name: {owner}, uid: u, controller: true}}]\n"
        f"spec: {{{spec}containers: [{{name: c, image: i}}]}}\n"
    )


REPLICA_SET = (
    "\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  name: odd\n  namespace: shop\n"
    "  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: front, uid: u, controller: true}]\n"
)
CLUSTER = documents(
    node("n1"),
    owned("web-5d-a", "ReplicaSet", "web-5d", spec="nodeName: n1, "),
    owned("web-5d-b", "ReplicaSet", "web-5d"),
    owned("odd-x", "ReplicaSet", "odd"),
    REPLICA_SET,
    owned("db-0", "StatefulSet", "db"),
    owned("load-1", "Job", "load"),
    owned("night-29-q", "Job", "night-29"),
    owned("agent-z", "DaemonSet", "agent"),
    owned("web", "StatefulSet", "other", namespace="else"),
)


@pytest.mark.parametrize(
    ("typed", "pod"),
    [
        (["pod/db-0", "-n", "shop"], "shop/db-0"),
        (["pods/db-0", "-n", "shop"], "shop/db-0"),
        (["deploy/web", "-n", "shop"], "shop/web-5d-b"),
        (["deployments.apps/web", "-n", "shop"], "shop/web-5d-b"),
        (["deployment/front", "-n", "shop"], "shop/odd-x"),
        (["shop/web"], "shop/web-5d-b"),
        (["web", "-n", "shop"], "shop/web-5d-b"),
        (["rs/web-5d", "-n", "shop"], "shop/web-5d-b"),
        (["sts/db", "-n", "shop"], "shop/db-0"),
        (["job/load", "-n", "shop"], "shop/load-1"),
        (["cronjob/night", "-n", "shop"], "shop/night-29-q"),
        (["ds/agent", "-n", "shop"], "shop/agent-z"),
        (["web", "-n", "else"], "else/web"),
    ],
)
def test_a_type_or_a_workloads_name_finds_its_pod(typed: list[str], pod: str) -> None:
    ran = podium("explain", *typed, "--from", "-", stdin=CLUSTER)
    assert (ran.code, ran.out.split()[0]) == (0, pod), ran


def test_a_workload_with_several_pods_says_which_is_judged() -> None:
    ran = podium("explain", "deploy/web", "-n", "shop", "--from", "-", stdin=CLUSTER)
    assert ran.err == "shop/web has 2 pods, 1 of them without a node: shop/web-5d-b is judged\n"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["pod/web", "-n", "shop"], "pod shop/web is not in the files; shop/web has 2 pods: leave out the type"),
        (["deploy/nix", "-n", "shop"], "deployment shop/nix has no pods in the files"),
        (["else/nix"], "pod else/nix is not in the files; they hold else/web in that namespace"),
        (["none/nix"], "pod none/nix is not in the files; they hold no pods in the namespace none, but in else, shop"),
        (["db-0"], "pod default/db-0 is not in the files; did you mean shop/db-0?"),
        (["-n", "else"], "say which pod: else/web waits for a node, and -A is for all that wait"),
    ],
)
def test_what_is_not_there_is_answered_with_names_of_the_namespace_that_was_asked_for(
    typed: list[str], sentence: str
) -> None:
    ran = podium("explain", *typed, "--from", "-", stdin=CLUSTER)
    assert (ran.code, ran.out, ran.err) == (2, "", f"{sentence}\n")


def test_a_pod_whose_namespace_is_called_like_a_type_is_found_by_its_namespace_option() -> None:
    cluster = documents(node("n1"), owned("x", "StatefulSet", "set", namespace="job"))
    assert podium("explain", "x", "-n", "job", "--from", "-", stdin=cluster).out.startswith("job/x fits")
