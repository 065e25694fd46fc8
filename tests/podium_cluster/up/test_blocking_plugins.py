"""A plugin that blocks holds up the scheduler of `podium up`, and nothing else."""

import os
import pty
import re
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.podium_cluster.up.pauses import PODS, call, check_nodes, check_pods, pod
from tests.podium_cluster.up.up_process import PodiumUp

BLOCKED, STUCK = 5.0, 120.0
"""Seconds that the plugin takes for a pod whose name begins with "slow", and for one that is named "slow-as-ever"."""
PLUGIN = f"""
import sys, time
import numpy as np
from podium import Plugin

class Sleeper(Plugin):
    def score(self, cycle, nodes):
        if cycle.pod.metadata.name.startswith("slow"):
            time.sleep({STUCK} if cycle.pod.metadata.name == "slow-as-ever" else {BLOCKED})
        if cycle.pod.metadata.name == "last":
            sys.exit(7)
        return np.zeros(len(nodes.rows), np.int64)
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms}
profiles:
- plugins: {multiPoint: {enabled: [{name: Sleeper}]}}
"""
BLOCKS = r'plugin "Sleeper" blocks: score has taken more than 100 ms for pod default/slow'
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    (tmp_path / "sleeper.py").write_text(PLUGIN)
    (tmp_path / "scheduler.yaml").write_text(CONFIG)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    chosen = ("--plugin", "sleeper:Sleeper", "--config", str(tmp_path / "scheduler.yaml"))
    return ("--port", "0", "--nodes", "4", "--workload", "none", "--speed", "50", *chosen)


def test_the_api_answers_and_the_lease_is_kept_while_a_plugin_blocks(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with PodiumUp(*arguments, home=tmp_path) as up:
        uids = {"slow": call(up.url + PODS, "POST", pod("slow"))["metadata"]["uid"]}
        up.wait_for(BLOCKS)
        began = time.monotonic()
        before = call(up.url + LEASE)["spec"]
        answers = []
        while (asked := time.monotonic()) < began + BLOCKED - 1:
            check_nodes(up, 4)
            answers.append(time.monotonic() - asked)
            name = f"meanwhile-{len(answers)}"
            uids[name] = call(up.url + PODS, "POST", pod(name))["metadata"]["uid"]
            time.sleep(0.2)
        after = call(up.url + LEASE)["spec"]
        assert len(answers) > 3
        assert max(answers) < BLOCKED / 2
        assert after["holderIdentity"] == before["holderIdentity"]
        assert after["renewTime"] > before["renewTime"]
        check_pods(up, uids)
        lease = call(up.url + LEASE)["spec"]
        assert (lease["holderIdentity"], lease["leaseTransitions"]) == (before["holderIdentity"], 0)
        assert up.stop() == 0
    assert "Traceback" not in up.output
    assert "waiting until it can be taken again" not in up.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_plugin_blocks_ends_the_cluster_when_the_call_has_ended(
    tmp_path: Path, arguments: tuple[str, ...], number: signal.Signals
) -> None:
    with PodiumUp(*arguments, home=tmp_path) as up:
        call(up.url + PODS, "POST", pod("slow"))
        up.wait_for(BLOCKS)
        assert up.stop(number) == 0
        assert not up.kubeconfig.exists()
    assert "stopping: the scheduler still finishes what is under way; a second signal ends it at once" in up.output
    assert "Traceback" not in up.output


def test_a_second_signal_ends_the_cluster_at_once_even_while_a_plugin_blocks(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with PodiumUp(*arguments, home=tmp_path) as up:
        call(up.url + PODS, "POST", pod("slow-as-ever"))
        up.wait_for(BLOCKS)
        began = time.monotonic()
        up.process.send_signal(signal.SIGINT)
        up.wait_for("a second signal ends it at once")
        assert up.stop(signal.SIGINT) == 1
        assert time.monotonic() - began < STUCK / 2


def test_a_plugin_that_exits_ends_the_cluster_with_its_exit_code(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with PodiumUp(*arguments, home=tmp_path) as up:
        call(up.url + PODS, "POST", pod("last"))
        assert up.process.wait(30) == 7
        assert not up.kubeconfig.exists()


def test_the_live_view_goes_on_while_a_plugin_blocks(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "slow.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: slow}\nspec: {containers: [{name: c, image: i}]}\n"
    )
    command = [sys.executable, "-m", "podium", "up", *arguments, "--workload", str(tmp_path / "slow.yaml")]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(XDG_STATE_HOME=str(tmp_path), TERM="xterm", LINES="30", COLUMNS="120")
        os.execv(sys.executable, command)
    seen, clocks, end = "", set[str](), time.monotonic() + 60
    try:
        while "placed default/slow on " not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 1.0)[0]:
                more = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(terminal, 65536).decode(errors="replace"))
                seen += more
                if "blocks: score has taken" in seen:
                    clocks.update(re.findall(r"podium up  http://\S+  (\d:\d\d)  ", more))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    assert len(clocks) > 3, f"the view stood still:\n{seen[-3000:]}"
    assert "no answer from the scheduler for " in seen
