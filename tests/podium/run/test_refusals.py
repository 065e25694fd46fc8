"""When Podium cannot reach a cluster or may not do what it must: what it says, and that it goes on once it can."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.podium.run.crowd import assert_well_placed, create_nodes, create_pods, until, until_all_bound
from tools.testbed import Component, ControlPlane


@pytest.fixture
def plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane(audit=True) as plane:
        yield plane


def test_a_scheduler_of_kube_schedulers_own_rights_needs_no_more(plane: ControlPlane, tmp_path: Path) -> None:
    pair = plane.authority.issue("system:kube-scheduler")
    create_nodes(plane, room_for=50)
    create_pods(plane, 50)
    podium = plane.start_podium(kubeconfig=plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=pair))
    until_all_bound(plane, podium)
    assert_well_placed(plane, 50)
    plane.client.poll("events.k8s.io/v1/Event", lambda events: len(events) == 50)
    assert "forbidden" not in podium.log_text().lower()


def test_without_permission_the_missing_rule_is_named_and_granting_it_is_enough(
    plane: ControlPlane, tmp_path: Path
) -> None:
    pair = plane.authority.issue("alice")
    create_nodes(plane, room_for=50)
    create_pods(plane, 50)
    kubeconfig = plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=pair)
    podium = plane.start_podium(kubeconfig=kubeconfig, wait=False)
    rule = 'needs the rule apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]'
    until(lambda: rule in podium.log_text(), "the missing rule is named", podium)
    assert podium.exit_code is None
    for role in ("kube-scheduler", "volume-scheduler"):
        plane.kubectl("create", "clusterrolebinding", f"a-{role}", f"--clusterrole=system:{role}", "--user=alice")
    until_all_bound(plane, podium)
    assert_well_placed(plane, 50)


def test_who_may_only_look_is_told_what_is_missing_to_bind(plane: ControlPlane, tmp_path: Path) -> None:
    pair = plane.authority.issue("alice")
    plane.kubectl("create", "clusterrole", "looker", "--verb=get,list,watch", "--resource=*.*")
    plane.kubectl("create", "clusterrolebinding", "looker", "--clusterrole=looker", "--user=alice")
    create_nodes(plane, room_for=50)
    create_pods(plane, 50)
    podium = plane.start_podium(kubeconfig=plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=pair))
    until(lambda: 'resources: ["pods/binding"], verbs: ["create"]' in podium.log_text(), "the rule is named", podium)
    for role in ("kube-scheduler", "volume-scheduler"):
        plane.kubectl("create", "clusterrolebinding", f"a-{role}", f"--clusterrole=system:{role}", "--user=alice")
    until_all_bound(plane, podium)
    assert_well_placed(plane, 50)


def test_an_api_server_that_is_not_there_yet_is_waited_for(plane: ControlPlane) -> None:
    create_nodes(plane, room_for=50)
    create_pods(plane, 50)
    plane.kill_apiserver()
    podium = plane.start_podium(wait=False)
    complaint = f"{plane.server.removeprefix('https://')} refuses connections: is the API server running there?"
    until(lambda: complaint in podium.log_text(), "it says whom it waits for", podium)
    assert podium.exit_code is None
    plane.restart_apiserver()
    until_all_bound(plane, podium)
    assert_well_placed(plane, 50)


def test_waiting_for_an_api_server_ends_when_it_is_told_to(plane: ControlPlane) -> None:
    plane.kill_apiserver()
    podium = plane.start_podium(wait=False)
    until(lambda: plane.server.removeprefix("https://") in podium.log_text(), "it says whom it waits for", podium)
    podium.terminate()
    assert podium.wait() == 0


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "kubeconfig"),
        ("clusters: [", "kubeconfig"),
        ("apiVersion: v1\nkind: Config\ncurrent-context: gone\n", "gone"),
    ],
    ids=["absent", "no YAML", "no such context"],
)
def test_a_wrong_kubeconfig_is_refused_in_one_sentence(
    control_plane: ControlPlane, tmp_path: Path, content: str | None, complaint: str
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    if content is not None:
        kubeconfig.write_text(content)
    podium = control_plane.start_podium(kubeconfig=kubeconfig, wait=False)
    assert podium.wait() == 2
    assert_one_sentence(podium, complaint)


def assert_one_sentence(podium: Component, complaint: str) -> None:
    said = podium.log_text().strip()
    assert complaint in said
    assert len(said.splitlines()) == 1, said
