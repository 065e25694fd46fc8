"""`podium explain` of a pod on a live cluster."""

from pathlib import Path

import pytest

from tests.podium.cli.command import podium
from tools.testbed import ControlPlane
from tools.testbed.objects import make_node, make_pod


def test_a_live_pod_is_explained_without_a_dump(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node("small", cpu="1"), make_node("large", cpu="8")])
    plane.client.create_all([make_pod("fits", cpu="2"), make_pod("huge", cpu="64")])
    fits = podium("explain", "fits", "--kubeconfig", str(plane.kubeconfig_path))
    huge = podium("explain", "default/huge", "--kubeconfig", str(plane.kubeconfig_path))
    assert (fits.code, huge.code) == (0, 1)
    assert "large" in fits.out.splitlines()[0]
    assert "0/2 nodes are available: 2 Insufficient cpu" in huge.out


def test_a_pod_without_a_namespace_is_in_that_of_the_option_or_of_the_context(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    plane = empty_control_plane
    plane.kubectl("create", "namespace", "shop")
    plane.client.create_all([make_node("only"), make_pod("web", namespace="shop")])
    given = podium("explain", "web", "-n", "shop", "--kubeconfig", str(plane.kubeconfig_path))
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(plane.kubeconfig_path.read_text())
    plane.kubectl("config", "set-context", "--current", "--namespace=shop", "--kubeconfig", str(kubeconfig))
    by_context = podium("explain", "web", "--kubeconfig", str(kubeconfig))
    nowhere = podium("explain", "web", "--kubeconfig", str(plane.kubeconfig_path))
    assert (given.code, by_context.code, nowhere.code) == (0, 0, 2)
    assert given.out.startswith("shop/web fits")
    assert by_context.out == given.out
    assert "did you mean shop/web?" in nowhere.err


def test_two_namespaces_that_differ_are_refused() -> None:
    ran = podium("explain", "shop/web", "-n", "default", "--from", "sample:cluster")
    assert (ran.code, ran.err) == (2, "shop/web is not in the namespace default: give one of them\n")


def test_what_may_not_be_seen_is_left_out_and_told(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node("n1"), make_pod("p1")])
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: sees-little}\nrules:\n"
    role += '- {apiGroups: [""], resources: [pods, nodes], verbs: [list]}\n'
    plane.kubectl("apply", "-f", "-", stdin=role)
    plane.kubectl("create", "clusterrolebinding", "sees-little", "--clusterrole=sees-little", "--user=jane")
    try:
        kubeconfig = tmp_path / "jane"
        plane.write_kubeconfig(kubeconfig, certificate=plane.authority.issue("jane"))
        ran = podium("explain", "p1", "--kubeconfig", str(kubeconfig))
    finally:
        plane.kubectl("delete", "clusterrolebinding", "sees-little")
        plane.kubectl("delete", "clusterrole", "sees-little")
    assert ran.code == 0
    assert "n1" in ran.out.splitlines()[0]
    assert 'persistentvolumes are left out: persistentvolumes is forbidden: User "jane" cannot list' in ran.err


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
    )
    ran = podium("explain", "p1", "--kubeconfig", str(kubeconfig))
    assert ran.code == 2
    assert "127.0.0.1:9 refuses connections" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_without_a_cluster_both_ways_to_name_one_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    ran = podium("explain", "web")
    assert ran.code == 2
    assert "give --kubeconfig FILE" in ran.err
    assert "--from cluster.json, made with kubectl get nodes,pods -A -o json" in ran.err


def test_a_dump_and_a_live_cluster_cannot_both_be_meant() -> None:
    ran = podium("explain", "p1", "--from", "x.json", "--context", "c")
    assert ran.code == 2
    assert "give one of them" in ran.err


def test_a_live_pod_is_explained_with_the_load_that_plugins_measure(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node("busy"), make_node("quiet"), make_pod("p1")])
    plane.kubectl("annotate", "node", "busy", "load=90")
    plane.kubectl("annotate", "node", "quiet", "load=10")
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins: {multiPoint: {enabled: [{name: Quiet, weight: 5}]}}\n"
        "  pluginConfig: [{name: Quiet, args: {source: {kind: annotations}, query: load}}]\n"
    )
    ran = podium(
        *("explain", "p1", "--kubeconfig", str(plane.kubeconfig_path), "--config", str(config)),
        *("--plugin", "tests.podium.load.sources.quiet:Quiet"),
    )
    assert ran.code == 0
    assert "goes to quiet" in ran.out.splitlines()[0]
