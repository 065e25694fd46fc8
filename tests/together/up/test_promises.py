"""A broker workload on a cluster in one process: played, placed by promises, and shown."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.podium_cluster.up.up_process import PodiumUp
from tools.testbed.ports import free_port

CONFIG = Path(__file__).parents[3] / "examples" / "config" / "qos-aware.yaml"
WORKLOAD = """\
0,1,1,any,0,1,600,-1,1.5,0.1,free,0.5,deployment,2,0,average,30001
2,2,2,any,0,11,600,-1,1.5,0.1,prod,1,deployment,1,0,average,30002
2,3,3,any,0,1,600,-1,0.1,0.1,opportunistic,0,job,2,4,aggregate,30003,20
"""
DEADLINE = 90.0


def podium(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "podium", *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env={**os.environ, **environment},
        check=False,
    )


def rows(port: int) -> dict[str, dict[str, Any]]:
    answer = podium("qos", "--url", f"http://127.0.0.1:{port}", "-o", "json")
    return {row["controller"]: row for row in json.loads(answer.stdout)} if answer.returncode == 0 else {}


def test_a_workload_is_played_and_its_promises_are_shown(tmp_path: Path) -> None:
    port, file, config = free_port(), tmp_path / "workload.csv", tmp_path / "scheduler.yaml"
    file.write_text(WORKLOAD)
    config.write_text(CONFIG.read_text().replace("30s", "1s"))
    options = ("--nodes", "1", "--workload", "none", "--port", "0", "--config", str(config), "--qos-port", str(port))
    with PodiumUp(*options, "--speed", "20", home=tmp_path) as up:
        played = podium(
            "workload", "play", str(file), "--speed", "20", "--duration", "60", "--leave", KUBECONFIG=str(up.kubeconfig)
        )
        assert played.returncode == 0, played.stdout + played.stderr
        assert "prod-deployment-average-2" in played.stdout
        end, wanted = time.monotonic() + DEADLINE, "prod-deployment-average-2"
        while not (found := rows(port)).get(wanted, {}).get("running"):
            assert time.monotonic() < end, f"not placed: {found}\n{up.output}"
            time.sleep(0.5)
        assert found["free-deployment-average-1"]["replicas"] == 2, "as its ReplicaSet says"
        table = podium("qos", "--url", f"http://127.0.0.1:{port}")
        assert table.stdout.split()[:6] == ["CONTROLLER", "QOS/SLO", "TTV", "RUNNING", "WAITING", "BINDING"]
        report = podium("qos", "report", "--url", f"http://127.0.0.1:{port}", "-o", "json")
        assert set(json.loads(report.stdout)) >= {"mean_deficit", "slo_met", "gini", "preemptions", "wasted_s"}


def test_a_page_that_is_not_there_is_bad_input() -> None:
    answer = podium("qos", "--url", f"http://127.0.0.1:{free_port()}")
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert "with --url" in answer.stderr


def test_a_workload_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "workload.csv"
    file.write_text("0,1,1,any\n")
    answer = podium("workload", "play", str(file))
    assert answer.returncode == 2
    assert "workload.csv:1: column" in answer.stderr
