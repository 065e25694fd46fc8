"""Questions about a running cluster get true answers: pods that wait at Permit, pods that are not there, shadows."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.podium.cli.command import podium
from tests.podium_cluster.up.pauses import PODS, call, placed, pod
from tests.podium_cluster.up.up_process import PodiumUp

ROOT = Path(__file__).parents[3]
QUICK = ("--port", "0", "--nodes", "2", "--workload", "none", "--speed", "50")
HOLD = '''
from podium import Plugin, Status, Wait


class Hold(Plugin):
    """Holds pods whose label says so."""

    def permit(self, cycle, node_name):
        return Wait(900) if "hold" in cycle.pod.labels else None
'''
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Hold}]}}}]
"""


def test_a_pod_that_waits_at_permit_is_said_to_and_the_plugin_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hold.py").write_text(HOLD)
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with PodiumUp(*QUICK, "--config", str(config), "--plugin", "hold:Hold", home=tmp_path) as up:
        placed(up, "free")
        held = pod("held")
        held["metadata"]["labels"] = {"hold": "yes"}
        uid = call(up.url + PODS, "POST", held)["metadata"]["uid"]
        end = time.monotonic() + 30
        events = f"{up.url}/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%3D{uid}"
        while not any(each["reason"] == "WaitingOnPermit" for each in call(events)["items"]):
            assert time.monotonic() < end, call(events)
            time.sleep(0.1)
        up.wait_for(
            r'held default/held at Permit: plugin "Hold" holds the pod for up to 15m0s before it goes to \w+-\d'
        )
        asked = podium("explain", "held", "--kubeconfig", str(up.kubeconfig))
        first = asked.out.splitlines()[0]
        assert re.fullmatch(
            r'default/held waits at Permit: plugin "Hold" holds the pod for up to 15m0s before it goes to \w+-\d', first
        )
        assert asked.code == 1
        data = podium("explain", "held", "--kubeconfig", str(up.kubeconfig), "-o", "json")
        assert "Hold" in json.loads(data.out)["message"]
        assert podium("explain", "free", "--kubeconfig", str(up.kubeconfig)).out.startswith("default/free fits: ")


def test_a_pod_that_is_nowhere_is_not_said_to_be_missing_in_files(tmp_path: Path) -> None:
    with PodiumUp(*QUICK, home=tmp_path) as up:
        ran = podium("explain", "nothing", "--kubeconfig", str(up.kubeconfig))
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            "pod default/nothing is not in the cluster; it has no pods: give one that does not exist yet with -f\n"
        )
        placed(up, "web")
        ran = podium("explain", "wep", "--kubeconfig", str(up.kubeconfig))
        assert ran.err == "pod default/wep is not in the cluster; did you mean default/web?\n"


def test_the_shadow_of_the_how_to_finds_something_to_report(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/run-a-cluster.md").read_text().partition("## Before you switch: shadow")[2]
    run, report = re.findall(r"^    podium (.*)$", page, re.M)[:2]
    with PodiumUp(*QUICK, home=tmp_path) as up:
        environment = {**os.environ, "KUBECONFIG": str(up.kubeconfig)}
        command = f"exec {shlex.quote(sys.executable)} -m podium {run.replace('--shadow', '--shadow --secure-port 0')}"
        (tmp_path / "shadow.log").touch()
        shadow = subprocess.Popen(["bash", "-c", command], cwd=tmp_path, env=environment)
        try:
            end = time.monotonic() + 60
            while "podium runs" not in (tmp_path / "shadow.log").read_text():
                assert time.monotonic() < end
                time.sleep(0.1)
            number = 0  # a pod that is bound before the shadow has seen it is not compared
            while (tmp_path / "shadow.log").read_text().count('"shadow":') < 3:
                assert time.monotonic() < end, (tmp_path / "shadow.log").read_text()
                placed(up, f"web-{number}")
                number += 1
        finally:
            shadow.send_signal(signal.SIGTERM)
            shadow.wait(30)
    ran = podium(*shlex.split(report.replace("shadow.log", str(tmp_path / "shadow.log"))))
    assert ran.code == 0, ran
    assert re.search(r"^(same|tie) +\d", ran.out, re.M), ran.out
