"""Promises to workloads on the cluster of `podium up`: the scenarios of the real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.podium_cluster.up.up_process import PodiumUp
from tools.kit import promise_scenarios
from tools.testbed.apiclient import ApiClient

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


class EmbeddedCluster:
    """One process that is API server, node and scheduler; what is in its file outlives it."""

    starts_pods = True

    def __init__(self, home: Path) -> None:
        self._home = home
        self._up: PodiumUp | None = None
        self._client: ApiClient | None = None

    @property
    def client(self) -> ApiClient:
        assert self._client is not None, "the cluster is started first"
        return self._client

    def start(self, config: dict[str, Any], qos_port: int = 0) -> None:
        self.close()
        file = self._home / "scheduler.yaml"
        file.write_text(yaml.safe_dump({**HEAD, **config}))
        options = ("--nodes", "1", "--workload", "none", "--port", "0", "--config", str(file))
        data = ("--data", str(self._home / "cluster.db"), "--qos-port", str(qos_port))
        self._up = PodiumUp(*options, *data, home=self._home).__enter__()
        self._client = ApiClient(self._up.url, ca_path=None, token="")

    def kill(self) -> None:
        assert self._up is not None
        self._up.process.kill()
        self._up.process.wait()

    def log(self) -> str:
        return "" if self._up is None else self._up.output[-6000:]

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        if self._up is not None:
            self._up.__exit__()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path)
    yield cluster
    cluster.close()


def test_a_controller_in_debt_preempts_one_with_slack(cluster: EmbeddedCluster) -> None:
    promise_scenarios.a_controller_in_debt_preempts_one_with_slack(cluster)


def test_a_pod_is_not_touched_before_its_minimum_running_time(cluster: EmbeddedCluster) -> None:
    promise_scenarios.a_pod_is_not_touched_before_its_minimum_running_time(cluster)


def test_a_used_up_disruption_budget_protects(cluster: EmbeddedCluster) -> None:
    promise_scenarios.a_used_up_disruption_budget_protects(cluster)


def test_pods_of_kube_system_are_never_touched(cluster: EmbeddedCluster) -> None:
    promise_scenarios.pods_of_kube_system_are_never_touched(cluster)


def test_a_killed_cluster_comes_back_with_the_same_figures(cluster: EmbeddedCluster) -> None:
    promise_scenarios.a_killed_scheduler_comes_back_with_the_same_figures(cluster)


def test_a_task_that_succeeds_has_not_lost_its_work(cluster: EmbeddedCluster) -> None:
    promise_scenarios.a_task_that_succeeds_has_not_lost_its_work(cluster)


def test_values_that_cannot_be_read_stop_nothing(cluster: EmbeddedCluster) -> None:
    promise_scenarios.values_that_cannot_be_read_stop_nothing(cluster)
