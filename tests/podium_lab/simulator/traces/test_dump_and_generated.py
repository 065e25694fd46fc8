"""Dumps and generated pods."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from podium_lab.simulator.pods import FOREVER
from podium_lab.simulator.scenario import Distribution, DumpedPods, Generated, PodShape, ScenarioError
from podium_lab.simulator.traces import dump, generated
from tests.podium_lab.simulator.scenarios import EXAMPLES

CLUSTER = EXAMPLES / "traces" / "cluster.yaml"


def test_pods_of_a_dump_that_have_a_node_are_there_first() -> None:
    pods = list(dump.arrivals(DumpedPods(file="", arrive="created"), CLUSTER, 1))
    assert [pod.node_name for pod in pods] == ["worker-0", "worker-0", "worker-1", "", "", ""]
    assert [pod.at for pod in pods] == [0, 0, 0, 180, 240, 300]
    assert pods[0].lifetime == FOREVER
    assert all(not pod.template.spec.node_name for pod in pods)


def test_a_dump_without_pods_is_told(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    with pytest.raises(ScenarioError, match="has no pods"):
        dump.read_pods(file)


def test_generated_pods_follow_their_distributions() -> None:
    given = Generated(
        count=4000,
        interval=Distribution(exponential="2s"),
        lifetime=Distribution(uniform=("1m", "3m")),
        shapes=[
            PodShape(weight=3, requests={"cpu": "500m"}),
            PodShape(weight=1, requests={"cpu": Distribution(choice={"1": 1, "2": 1}), "memory": "1Gi"}, priority=7),
        ],
    )
    pods = list(generated.arrivals(given, 1))
    assert len({pod.name for pod in pods}) == 4000
    assert pods[-1].at / 4000 == pytest.approx(2, rel=0.1)
    assert sum(pod.lifetime for pod in pods) / 4000 == pytest.approx(120, rel=0.05)
    cpus = Counter(pod.template.cpu for pod in pods)
    assert cpus[500] / 4000 == pytest.approx(0.75, abs=0.03)
    assert cpus[1000] == pytest.approx(cpus[2000], rel=0.2)
    assert {pod.template.spec.priority for pod in pods if pod.template.memory} == {7}
    assert len({id(pod.template) for pod in pods}) == 3


def test_batches_arrive_together() -> None:
    pods = list(generated.arrivals(Generated(count=10, interval="1m", batch=4), 1))
    assert [pod.at for pod in pods] == [0] * 4 + [60] * 4 + [120] * 2


def test_a_spec_that_is_none_is_told() -> None:
    given = Generated(count=1, shapes=[PodShape(spec={"tolerations": 5})])
    with pytest.raises(ScenarioError, match="is not that of a pod"):
        list(generated.arrivals(given, 1))
