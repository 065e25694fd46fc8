"""Promises to workloads on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tools.kit import promise_scenarios
from tools.testbed import Component, ControlPlane
from tools.testbed.apiclient import ApiClient
from tools.testbed.objects import make_node


class RealCluster:
    """A real API server with one node, and `podium run`."""

    starts_pods = False

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._podium: Component | None = None

    @property
    def client(self) -> ApiClient:
        return self._plane.client

    def start(self, config: dict[str, Any], qos_port: int = 0) -> None:
        self._podium = self._plane.start_podium(config, flags=[f"--qos-port={qos_port}"])

    def kill(self) -> None:
        assert self._podium is not None
        self._podium.kill()

    def log(self) -> str:
        return "" if self._podium is None else self._podium.log_tail(6000)


@pytest.fixture(scope="module")
def own_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def cluster(own_plane: ControlPlane) -> Iterator[RealCluster]:
    own_plane.client.create(make_node("n1", cpu="2"))
    yield RealCluster(own_plane)
    own_plane.stop_components()
    own_plane.wipe()


def test_a_controller_in_debt_preempts_one_with_slack(cluster: RealCluster) -> None:
    promise_scenarios.a_controller_in_debt_preempts_one_with_slack(cluster)


def test_a_pod_is_not_touched_before_its_minimum_running_time(cluster: RealCluster) -> None:
    promise_scenarios.a_pod_is_not_touched_before_its_minimum_running_time(cluster)


def test_a_used_up_disruption_budget_protects(cluster: RealCluster) -> None:
    promise_scenarios.a_used_up_disruption_budget_protects(cluster)


def test_pods_of_kube_system_are_never_touched(cluster: RealCluster) -> None:
    promise_scenarios.pods_of_kube_system_are_never_touched(cluster)


def test_a_killed_scheduler_comes_back_with_the_same_figures(cluster: RealCluster) -> None:
    promise_scenarios.a_killed_scheduler_comes_back_with_the_same_figures(cluster)


def test_a_task_that_succeeds_has_not_lost_its_work(cluster: RealCluster) -> None:
    promise_scenarios.a_task_that_succeeds_has_not_lost_its_work(cluster)


def test_values_that_cannot_be_read_stop_nothing(cluster: RealCluster) -> None:
    promise_scenarios.values_that_cannot_be_read_stop_nothing(cluster)
