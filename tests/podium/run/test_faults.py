"""Faults in the middle of work, with real processes: whatever fails, every pod ends up bound once where it fits.

Each test puts more pods in front of Podium than it can bind before the fault strikes, and ends with the same count
(crowd.py), which asks the API server alone.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.podium.run.crowd import (
    assert_well_placed,
    create_nodes,
    create_pods,
    until,
    until_all_bound,
    until_bound,
)
from tools.testbed import Component, ControlPlane
from tools.testbed.audit import Request, bindings, lease_changes
from tools.testbed.http_faults import FaultProxy, Faults

MIDDLE = 300  # pods bound when the fault strikes
LEASE = "kube-scheduler"
ELECTION: dict[str, Any] = {
    "leaderElection": {"leaderElect": True, "leaseDuration": "6s", "renewDeadline": "5s", "retryPeriod": "1s"}
}


@pytest.fixture
def plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane(audit=True) as plane:
        yield plane


def test_the_api_server_is_killed_and_restarted(plane: ControlPlane) -> None:
    create_nodes(plane, room_for=2000)
    create_pods(plane, 2000)
    podium = plane.start_podium()
    until_bound(plane, MIDDLE, podium)
    plane.kill_apiserver()
    time.sleep(1)  # long enough for requests to fail, not only to be late
    plane.restart_apiserver()
    until_all_bound(plane, podium)
    assert podium.exit_code is None
    assert_well_placed(plane, 2000, audit_complete=False)


def _stop(podium: Component) -> None:
    podium.terminate()
    assert podium.wait() == 0


@pytest.mark.parametrize("end", [Component.kill, _stop], ids=["killed", "stopped"])
def test_podium_ends_in_the_middle_and_the_next_one_goes_on(
    plane: ControlPlane, end: Callable[[Component], None]
) -> None:
    """There are more pods than room, so the second start also has to see what the first one filled."""
    create_nodes(plane, room_for=2000)
    create_pods(plane, 2005)
    for bound in (MIDDLE, 3 * MIDDLE):
        podium = plane.start_podium()
        until_bound(plane, bound, podium)
        end(podium)
    podium = plane.start_podium()
    until_all_bound(plane, podium, surplus=5)
    assert_well_placed(plane, 2005, surplus=5)


def test_a_leader_that_slept_past_its_lease_binds_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    create_nodes(plane, room_for=2000)
    create_pods(plane, 2000)
    replicas = {user: _start_replica(plane, user, tmp_path) for user in ("replica-1", "replica-2")}
    until_bound(plane, MIDDLE, *replicas.values())
    sleeper = bindings(plane.audit_log)[0].user
    leader, heir = replicas.pop(sleeper), replicas.popitem()[1]
    leader.pause()
    assert {binding.user for binding in bindings(plane.audit_log)} == {sleeper}
    until(lambda: any(binding.user != sleeper for binding in bindings(plane.audit_log)), "the heir binds", heir)
    leader.resume()  # with pods still to be bound, every one of them in its queue
    assert leader.wait() == 1, "a leader that lost its lease ends with 1"
    until_all_bound(plane, heir)
    assert heir.exit_code is None
    taken_over = next(change for change in lease_changes(plane.audit_log, LEASE) if _takes_it_from(sleeper, change))
    late = [
        binding for binding in bindings(plane.audit_log) if binding.user == sleeper and binding.time > taken_over.time
    ]
    assert not late, f"the stale leader asked for {len(late)} bindings"
    assert_well_placed(plane, 2000)


def test_watches_are_cut_every_second(plane: ControlPlane, tmp_path: Path) -> None:
    create_nodes(plane, room_for=1000)
    with FaultProxy(plane, Faults()) as proxy:
        podium = plane.start_podium(kubeconfig=plane.write_kubeconfig(tmp_path / "proxied", server=proxy.url))
        with _every_second(proxy.cut_watches):
            for wave in range(5):
                create_pods(plane, 200, f"wave-{wave}")
                time.sleep(1)
            until_all_bound(plane, podium)
        assert proxy.counts["cut"] > 10
    assert_well_placed(plane, 1000)


def test_requests_are_refused_delayed_and_lost(plane: ControlPlane, tmp_path: Path) -> None:
    create_nodes(plane, room_for=500)
    create_pods(plane, 500)
    storm = Faults(
        conflict=0.05, too_many=0.03, server_error=0.05, delay=0.1, lost_answer=0.05, refused=0.03, truncated=0.3
    )
    with FaultProxy(plane, storm, seed=1) as proxy:
        podium = plane.start_podium(kubeconfig=plane.write_kubeconfig(tmp_path / "proxied", server=proxy.url))
        until_all_bound(plane, podium)
        assert podium.exit_code is None
        counts = proxy.counts
    assert all(counts[fault] for fault in ("conflict", "too_many", "server_error", "delay", "lost_answer", "refused"))
    assert_well_placed(plane, 500)


@pytest.mark.parametrize(
    "doubt",
    [Faults(lost_answer=0.4, refused=0.3), Faults(false_error=0.4, server_error=0.3)],
    ids=["silence", "errors"],
)
def test_a_binding_in_doubt_keeps_its_room(plane: ControlPlane, tmp_path: Path, doubt: Faults) -> None:
    """Every node has room for one pod, and the watch tells too late which bindings were carried out: to give the room
    of a binding that seemed to fail to another pod would put two pods on one node."""
    create_nodes(plane, room_for=50)
    with FaultProxy(plane, Faults(), seed=2) as proxy:
        podium = plane.start_podium(kubeconfig=plane.write_kubeconfig(tmp_path / "proxied", server=proxy.url))
        proxy.faults = replace(doubt, watch_lag=2.0)
        create_pods(plane, 50)
        until_all_bound(plane, podium)
        assert len(proxy.counts) == 2
    assert_well_placed(plane, 50)


def test_a_client_certificate_expires_and_is_replaced(plane: ControlPlane, tmp_path: Path) -> None:
    create_nodes(plane, room_for=200)
    create_pods(plane, 100, "before")
    lifetime = timedelta(seconds=10)
    pair = plane.authority.issue("scheduler", organizations=("system:masters",), lifetime=lifetime)
    expires = time.monotonic() + lifetime.total_seconds()
    podium = plane.start_podium(kubeconfig=plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=pair))
    until_all_bound(plane, podium)
    time.sleep(max(0.0, expires + 1 - time.monotonic()))
    create_pods(plane, 100, "after")
    time.sleep(1)
    assert len(plane.client.list("Pod", field_selector="spec.nodeName=")) == 100, "nobody may bind with what expired"
    assert podium.exit_code is None
    plane.authority.issue("scheduler", organizations=("system:masters",))
    until_all_bound(plane, podium)
    assert_well_placed(plane, 200)


def test_a_token_is_rotated(plane: ControlPlane, tmp_path: Path) -> None:
    """The old token ends with the API server that knew it; the file has the new one before that."""
    token = tmp_path / "token"
    token.write_text("first")
    kubeconfig = _with_token_file(plane, tmp_path / "kubeconfig", token)
    plane.set_tokens({"first": "system:kube-scheduler"})
    plane.restart_apiserver()
    create_nodes(plane, room_for=200)
    create_pods(plane, 100, "before")
    podium = plane.start_podium(kubeconfig=kubeconfig)
    until_all_bound(plane, podium)
    token.write_text("second")
    plane.set_tokens({"second": "system:kube-scheduler"})
    plane.restart_apiserver()
    create_pods(plane, 100, "after")
    until_all_bound(plane, podium)
    assert_well_placed(plane, 200)
    assert {binding.user for binding in bindings(plane.audit_log)} == {"system:kube-scheduler"}


def _start_replica(plane: ControlPlane, user: str, folder: Path) -> Component:
    """With a certificate of its own, so that the audit log can tell it from the other."""
    pair = plane.authority.issue(user, organizations=("system:masters",))
    return plane.start_podium(ELECTION, kubeconfig=plane.write_kubeconfig(folder / user, certificate=pair), wait=False)


def _takes_it_from(user: str, change: Request) -> bool:
    return change.succeeded and change.user != user


@contextmanager
def _every_second(action: Callable[[], object]) -> Iterator[None]:
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(1.0):
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _with_token_file(plane: ControlPlane, path: Path, token: Path) -> Path:
    content = yaml.safe_load(plane.write_kubeconfig(path).read_text())
    content["users"][0]["user"] = {"tokenFile": str(token)}
    path.write_text(yaml.safe_dump(content))
    return path
