"""Broker workloads, dumps and generated pods."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from podium.simulator.errors import ScenarioError
from podium.simulator.pods import FOREVER
from podium.simulator.scenario import BrokerPods, Distribution, DumpedPods, Generated, PodShape
from podium.simulator.traces import broker, dump, generated
from tests.simulator.scenarios import DATA, EXAMPLES, needs

CLUSTER = EXAMPLES / "traces" / "cluster.yaml"


def test_a_job_runs_its_tasks_so_many_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "job.csv"
    file.write_text("5,1,1,any,0,1,300,-1,0.85,0.5,free,0.5,job,2,5,aggregate,30001,120\n")
    pods = list(broker.arrivals(BrokerPods(file=""), file))
    assert [pod.at for pod in pods] == [5, 5]
    assert {pod.lifetime for pod in pods} == {120}
    tasks = pods[0].tasks
    assert tasks is not None and tasks is pods[1].tasks
    later = [tasks.next(pods[0], 125.0) for _ in range(4)]
    assert [each and (each.name[-2:], each.at) for each in later] == [("-2", 125.0), ("-3", 125.0), ("-4", 125.0), None]
    assert (pods[0].template.cpu, pods[0].template.memory) == (850, 500_000 * 1024)
    assert pods[0].template.spec.priority == 100
    assert pods[0].template.annotations["slo"] == "0.5"


def test_a_deployment_has_its_replicas_at_once(tmp_path: Path) -> None:
    file = tmp_path / "deployment.csv"
    file.write_text("5,1,1,any,0,11,300,-1,0.85,0.85,prod,1,deployment,3,0,average,30001\n")
    pods = list(broker.arrivals(BrokerPods(file=""), file))
    assert [(pod.at, pod.lifetime, pod.until) for pod in pods] == [(5, FOREVER, 305)] * 3
    assert len({pod.name for pod in pods}) == 3


@needs("qos-workloads")
@pytest.mark.parametrize("file", sorted((DATA / "qos-workloads").glob("p*/*.csv")), ids=lambda file: file.stem)
def test_every_broker_file_can_be_read(file: Path) -> None:
    names = Counter(pod.name for pod in broker.arrivals(BrokerPods(file=""), file))
    assert set(names.values()) == {1}


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
