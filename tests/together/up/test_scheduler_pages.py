"""`podium explain` and `podium queue` ask the scheduler in charge: that of `podium up`, or one that is named."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.podium.cli.command import podium
from tests.podium_cluster.up.pauses import PODS, call, placed, pod
from tests.podium_cluster.up.up_process import PodiumUp
from tools.testbed.ports import free_port

ROOT = Path(__file__).parents[3]
QUICK = ("--port", "0", "--nodes", "2", "--workload", "none", "--speed", "50", "--qos-port", "0")
WORD = "node(s) did not say how much GPU memory is free"
PLUGIN = f'''
from podium import Plugin


class GpuMemory(Plugin):
    def filter_node(self, cycle, node):
        return "{WORD}" if "gpu" in cycle.pod.labels else None

    def interests(self):
        return []
'''
OWN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: own, plugins: {multiPoint: {enabled: [{name: GpuMemory}]}}}]
"""
SAID = f"0/2 nodes are available: 2 {WORD}"


def wants_gpu(name: str, **spec: str) -> dict[str, object]:
    wanted = pod(name)
    wanted["metadata"]["labels"] = {"gpu": "yes"}
    wanted["spec"].update(spec)
    return wanted


@pytest.fixture
def up(tmp_path: Path) -> Iterator[PodiumUp]:
    (tmp_path / "gpu_memory.py").write_text(PLUGIN)
    with PodiumUp(*QUICK, "--plugin", str(tmp_path / "gpu_memory.py"), home=tmp_path) as running:
        placed(running, "free")
        yield running


def wait_until_refused(up: PodiumUp, name: str) -> None:
    end = time.monotonic() + 30
    while not call(f"{up.url}{PODS}/{name}")["status"].get("conditions"):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_in_podium_up_the_scheduler_with_its_plugins_answers(up: PodiumUp, tmp_path: Path) -> None:
    call(up.url + PODS, "POST", wants_gpu("g1"))
    wait_until_refused(up, "g1")
    kubeconfig = ("--kubeconfig", str(up.kubeconfig))

    alone = podium("explain", "default/g1", *kubeconfig)
    assert alone.code == 1
    assert alone.out.startswith(f"default/g1 fits nowhere: {SAID}")
    assert "warning" not in alone.out + alone.err
    together = json.loads(podium("explain", "-A", *kubeconfig, "-o", "json").out)
    (entry,) = together
    assert (entry["pod"], entry["selected"], entry["queue"]) == ("default/g1", None, "unschedulable")
    assert entry["attempts"] >= 1
    assert entry["message"].startswith(SAID)
    other = tmp_path / "other.py"
    other.write_text(PLUGIN.replace("GpuMemory", "Other").replace(WORD, "other"))
    tried = podium("explain", "g1", *kubeconfig, "--plugin", str(other))
    assert tried.out.startswith("default/g1 fits nowhere: 0/2 nodes are available: 2 other.")
    assert f"warning: its scheduler decided otherwise: {SAID}" in tried.out

    queue = json.loads(podium("queue", *kubeconfig, "-o", "json").out)
    assert [each["pod"] for each in queue["pods"]] == ["default/g1"]
    assert [each["plugin"] for each in queue["pods"][0]["waitsFor"]] == ["GpuMemory"]
    lines = podium("queue", *kubeconfig, columns=80).out.splitlines()
    assert lines[0] == "1 waiting for an event"
    assert max(map(len, lines)) <= 80
    assert podium("queue", "-n", "shop", *kubeconfig).out.splitlines()[1] == "none of them in this namespace"


def test_a_watch_prints_again_when_the_answer_changes_and_ends_with_ctrl_c(up: PodiumUp, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "podium",
        "explain",
        "late",
        "-w",
        "-o",
        "json",
        "--kubeconfig",
        str(up.kubeconfig),
    ]
    call(up.url + PODS, "POST", wants_gpu("late"))
    wait_until_refused(up, "late")
    with (tmp_path / "watch.log").open("w") as log, subprocess.Popen(command, stdout=log) as watching:
        end = time.monotonic() + 60

        def wait_for(text: str) -> None:
            while text not in (tmp_path / "watch.log").read_text():
                assert time.monotonic() < end
                time.sleep(0.1)

        wait_for('"remedies"')
        call(f"{up.url}{PODS}/late", "PATCH", {"metadata": {"labels": {"gpu": None}}}, "application/merge-patch+json")
        wait_for('"message": null')
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 0
    printed = (tmp_path / "watch.log").read_text()
    assert re.findall(r'^  "selected": (.).*$', printed, re.M) == ["n", '"']


def test_another_scheduler_answers_where_it_is_named_and_is_quoted_where_it_is_not(
    up: PodiumUp, tmp_path: Path
) -> None:
    plugin, config, log = tmp_path / "gpu_memory.py", tmp_path / "own.yaml", tmp_path / "run.log"
    config.write_text(OWN)
    plain = tmp_path / "plain.yaml"
    plain.write_text(OWN.partition(", plugins")[0] + "}]\n")
    kubeconfig = ("--kubeconfig", str(up.kubeconfig))
    command = [sys.executable, "-m", "podium", "run", *kubeconfig, "--config", str(config), "--plugin", str(plugin)]
    port = free_port()
    command += ["--secure-port", str(port), "--bind-address", "127.0.0.1", "--qos-port", "0"]
    at = ("--scheduler", f"https://127.0.0.1:{port}")
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env=os.environ) as running:
        try:
            end = time.monotonic() + 60
            while "podium runs" not in log.read_text():
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            call(up.url + PODS, "POST", wants_gpu("own", schedulerName="own"))
            wait_until_refused(up, "own")
            unknown = podium("explain", "own", *kubeconfig)
            guessed = podium("explain", "own", *kubeconfig, "--config", str(plain))
            read = podium("explain", "own", *kubeconfig, *at)
            whole = podium("explain", "own", *kubeconfig, *at, "--plugin", str(plugin))
            queue = podium("queue", *kubeconfig, *at, "-o", "json")
        finally:
            running.terminate()
            running.wait(30)
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err.endswith("give that of its scheduler with --config, or --scheduler URL\n")
    warning = guessed.out.splitlines()[1]
    assert guessed.out.startswith("default/own fits: ")
    assert warning.startswith(f"warning: its scheduler decided otherwise: {SAID}")
    assert warning.endswith("(give --config and --plugin as it has them, or --scheduler URL)")
    assert f"it runs with GpuMemory, without which the pod was judged here: give --plugin {plugin}" in read.out
    assert (whole.code, whole.out.partition(".")[0]) == (1, f"default/own fits nowhere: {SAID}")
    assert "warning" not in whole.out
    assert [each["pod"] for each in json.loads(queue.out)["pods"]] == ["default/own"]
