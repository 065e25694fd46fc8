"""Broker workloads: what a row becomes, and what is said of odd and broken files."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from podium_lab.simulator.pods import FOREVER
from podium_lab.simulator.scenario import BrokerPods, ScenarioError
from podium_lab.simulator.traces import broker
from podium_lab.simulator.traces.broker import BrokerWorkload
from tests.podium_lab.simulator.scenarios import DATA, EXAMPLES, needs
from tools.kit.forked import forked

DEPLOYMENT = "{at},{id},1,any,0,11,300,-1,0.85,0.85,prod,{slo},deployment,3,,average,"
JOB = "{at},{id},1,any,0,1,,-1,0.85,0.85,free,{slo},job,2,{tasks},aggregate,,120"


def deployment(at: float = 0, task: int = 1, slo: str = "1") -> str:
    return DEPLOYMENT.format(at=at, id=task, slo=slo) + "\n"


def job(at: float = 0, task: int = 1, slo: str = "0.5", tasks: str = "5") -> str:
    return JOB.format(at=at, id=task, slo=slo, tasks=tasks) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "work.csv"


def read(file: Path, *rows: str) -> BrokerWorkload:
    file.write_text("".join(rows))
    return broker.read_workload(file, BrokerPods(file="").priorities)


def test_a_job_runs_its_tasks_so_many_at_a_time(file: Path) -> None:
    file.write_text("5,1,1,any,0,1,300,-1,0.85,0.5,free,0.5,job,2,5,aggregate,30001,120\n")
    pods = list(broker.arrivals(BrokerPods(file=""), file))
    assert [pod.at for pod in pods] == [5, 5]
    assert {pod.lifetime for pod in pods} == {120}
    tasks = pods[0].tasks
    assert tasks is not None
    assert tasks is pods[1].tasks
    later = [tasks.next(pods[0], 125.0) for _ in range(4)]
    assert [each and (each.name[-2:], each.at) for each in later] == [("-2", 125.0), ("-3", 125.0), ("-4", 125.0), None]
    assert (pods[0].template.cpu, pods[0].template.memory) == (850, 500_000 * 1024)
    assert pods[0].template.spec.priority == 100
    assert pods[0].template.annotations["slo"] == "0.5"


def test_a_deployment_has_its_replicas_at_once(file: Path) -> None:
    file.write_text("5,1,1,any,0,11,300,-1,0.85,0.85,prod,1,deployment,3,0,average,30001\n")
    pods = list(broker.arrivals(BrokerPods(file=""), file))
    assert [(pod.at, pod.lifetime, pod.until) for pod in pods] == [(5, FOREVER, 305)] * 3
    assert len({pod.name for pod in pods}) == 3


@needs("qos-workloads")
@pytest.mark.parametrize("given", sorted((DATA / "qos-workloads").glob("p*/*.csv")), ids=lambda file: file.stem)
def test_every_broker_file_can_be_read(given: Path) -> None:
    names = Counter(pod.name for pod in broker.arrivals(BrokerPods(file=""), given))
    assert set(names.values()) == {1}


def test_what_a_row_does_not_need_may_be_empty(file: Path) -> None:
    found = read(file, job(tasks=""), job(task=2))
    assert [(each.pods, each.lifetime) for each in found.requests] == [(2, 120), (5, 120)]
    assert found.oddities == []


def test_a_row_of_names_is_left_out(file: Path) -> None:
    assert len(read(file, "jid" + "," * 16 + "\n", deployment()).requests) == 1


@pytest.mark.parametrize(
    ("rows", "oddity"),
    [
        ((deployment(9), deployment(4, 2)), "work.csv:2: the row before comes later"),
        ((job(), deployment(task=2)), "work.csv:2: 17 fields, other rows have 18"),
        ((deployment(slo="7"),), 'work.csv:1: column 12: "7" is no SLO from 0 to 1; 0.8 counts'),
        ((deployment(slo="NaN"),), 'column 12: "NaN" is no SLO'),
        ((deployment(slo="much"),), 'column 12: "much" is no SLO'),
    ],
    ids=["unsorted", "ragged", "an SLO of 7", "an SLO of NaN", "an SLO of words"],
)
def test_an_odd_file_is_run_and_reported(file: Path, rows: tuple[str, ...], oddity: str) -> None:
    found = read(file, *rows)
    assert [each.at for each in found.requests] == sorted(each.at for each in found.requests)
    assert len(found.oddities) == 1
    assert oddity in found.oddities[0]


def test_rows_of_the_first_experiments_do_not_mix_with_others(file: Path) -> None:
    with pytest.raises(ScenarioError, match=r"work\.csv:2: expected 17 fields as in other rows, got 12"):
        read(file, deployment(), "1,2,2,any,0,1,300,-1,0.85,0.85,free,0.5\n")


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forked("simulate", str(EXAMPLES / "qos.yaml"), *arguments, "--qos-port", "0", "--json", timeout=300)


def test_an_experiment_begins_with_its_first_row(file: Path) -> None:
    file.write_text(deployment(90_000) + deployment(90_010, 2) + deployment(99_000, 3))
    answer = simulate("--set", f"workload={file}", "--seeds", "1")
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr.splitlines() == [f"{file}:3: 1 of 3 rows come after the end of the run"]
    rows = json.loads(answer.stdout)
    assert [row["profile"] for row in rows] == ["default", "QosAware"]
    assert all((row["arrived"], row["slo_nearly_met"], row["makespan_s"]) == (6, 1.0, 310.0) for row in rows)


def test_work_that_a_deployment_ends_with_is_not_lost(file: Path) -> None:
    file.write_text(deployment(slo="0.5").replace("average", "aggregate"))
    rows = json.loads(simulate("--set", f"workload={file}", "--seeds", "1").stdout)
    assert all((row["mean_deficit"], row["slo_met"]) == (0.0, 1.0) and row["wasted_s"] < 30 for row in rows), rows


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xca\xfe\x00\xff\n", b"a,b\n", b'"0,1\n'], ids=repr)
def test_what_is_no_workload_is_bad_input(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    answer = simulate("--set", f"workload={file}")
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"{file}:")
    assert answer.stderr.count("\n") == 1
