"""`podium up`: what it prints, how it ends, and what it keeps."""

import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.podium.cli.command import podium
from tests.podium_cluster.up.up_process import PodiumUp

ROOT = Path(__file__).parents[3]
LEFT = "<the terminal is back>"
QUICK = ("--port", "0", "--speed", "50")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {containers: [{name: main, image: nginx}]}
"""


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def refused(*arguments: str) -> str:
    """The one sentence of a command that ends with 2."""
    ran = podium("up", *arguments)
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err.count("\n") == 1, ran.err
    return ran.err.strip()


def test_the_sample_is_placed_but_for_the_pod_that_fits_nowhere(tmp_path: Path) -> None:
    with PodiumUp(*QUICK, home=tmp_path) as up:
        up.wait_for(r"first pod placed \d+\.\d s after the start")
        up.wait_for("no node for analytics/training: 0/12 nodes are available: 12 Insufficient nvidia.com/gpu")
        for workload in ("kube-system/node-monitor-", "shop/web-", "shop/api-", "shop/db-2", "analytics/report-"):
            up.wait_for(f"placed {workload}\\S* on ")
        assert "12 nodes on http://127.0.0.1:" in up.output
        kubeconfig = json.loads(up.kubeconfig.read_text())
        assert kubeconfig["clusters"][0]["cluster"]["server"] == up.url
        zones = {
            node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in get(f"{up.url}/api/v1/nodes")["items"]
        }
        assert zones == {"zone-a", "zone-b", "zone-c"}
        assert up.stop(signal.SIGTERM) == 0
    assert not up.kubeconfig.exists()
    assert "Traceback" not in up.output


def test_ctrl_c_stops_it_in_an_orderly_way(tmp_path: Path) -> None:
    with PodiumUp(*QUICK, "--nodes", "1", "--workload", "none", home=tmp_path) as up:
        assert up.stop(signal.SIGINT) == 0
    assert "Traceback" not in up.output


def test_a_workload_may_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POD % "a")
    (tmp_path / "b.yaml").write_text(POD % "b")
    manifests = ROOT / "tests/podium_cluster/apiserver/manifests"
    for source, target in (("widget", "c"), ("definition", "d")):  # the kind is defined after its object
        (tmp_path / f"{target}.yaml").write_text((manifests / f"{source}.yaml").read_text())
    with PodiumUp(*QUICK, "--nodes", "2", "--workload", str(tmp_path), home=tmp_path) as up:
        up.wait_for("placed default/a on ")
        up.wait_for("placed default/b on ")
        assert get(f"{up.url}/apis/shop.example/v1/widgets")["items"][0]["metadata"]["name"] == "bolt"
        assert "2 nodes on" in up.output


def test_everything_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "cluster.db"
    (tmp_path / "pod.yaml").write_text(POD % "a")
    options = (*QUICK, "--data", str(file))
    with PodiumUp(*options, "--nodes", "2", "--workload", str(tmp_path / "pod.yaml"), home=tmp_path) as up:
        up.wait_for("placed default/a on ")
        before = get(f"{up.url}/api/v1/namespaces/default/pods/a")
        up.process.kill()
    with PodiumUp(*options, home=tmp_path) as up:  # nodes and workload are those in the file
        after = get(f"{up.url}/api/v1/namespaces/default/pods/a")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"]["nodeName"] == before["spec"]["nodeName"]
        assert len(get(f"{up.url}/api/v1/nodes")["items"]) == 2
        assert f"2 nodes on {up.url}, 0 objects created, 1 pod from before" in up.output
        assert len(get(f"{up.url}/api/v1/pods")["items"]) == 1
        assert up.stop() == 0


def test_a_port_in_use_is_said_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refused("--port", str(port))
    assert re.fullmatch(rf"nothing can listen on 127\.0\.0\.1:{port}: address already in use; .*--port 0 .*", sentence)


def test_a_bad_configuration_is_told_as_podium_run_tells_it(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparalelism: 3\n")
    sentence = refused("--config", str(file))
    assert 'unknown field "paralelism"' in sentence
    assert podium("run", "--config", str(file)).err.strip() == sentence


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        ("kind: Pod\n", "document 1: apiVersion is missing"),
        (
            POD.replace("containers: [{name", "containers: [{nome") % "a",
            'Pod a: .*unknown field "spec.containers\\[0\\].nome"',
        ),
        (POD % "B", 'Pod B: Pod "B" is invalid: metadata.name'),
        (
            POD.replace("kind: Pod", "kind: Pid") % "a",
            r"Pid a \(v1, in \S+bad\.yaml\): this API does not serve this kind",
        ),
    ],
)
def test_a_bad_workload_is_one_sentence(tmp_path: Path, manifest: str, sentence: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(manifest)
    assert re.search(f"--workload.*{sentence}", refused("--port", "0", "--workload", str(file)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--workload", "nowhere"), "--workload nowhere: there is no such file or folder"),
        (
            ("--workload", "sample:nope"),
            "sample:nope: there is no such sample; write sample:cluster or sample:device-workload or sample:workload",
        ),
        (("--speed", "0"), "--speed 0: write a number above 0, at most 1000"),
        (("--log-level", "loud"), '--log-level "loud": write one of trace, debug, info, warning, error'),
        (("--data", "/dev/null"), "--data /dev/null cannot be opened: it is not a file"),
        (("--data", "/nowhere/cluster.db"), "--data /nowhere/cluster.db cannot be made: there is no folder /nowhere"),
    ],
)
def test_a_bad_option_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    assert refused("--port", "0", *arguments) == sentence


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_demonstration_explains_what_fits_nowhere_and_ends(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "MAKEFLAGS": ""}  # not those of `make test`
    ran = subprocess.run(
        ["make", "-s", "-o", ".venv/.ready", "demo", "PORT=0"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    assert re.search(r"^\d+ pods placed, 1 without a node$", ran.stdout, re.M)
    assert re.search(r"^\$ podium explain analytics/training --kubeconfig \S+$", ran.stdout, re.M)
    assert "analytics/training fits nowhere: 0/12 nodes are available" in ran.stdout
    unblocked = ran.stdout.partition("What would unblock it")[2]
    assert re.search(r"^gpu-0 +.*4 more nvidia.com/gpu|^gpu-0 +.*more nvidia.com/gpu \(asks for 4", unblocked, re.M)


def test_a_cluster_ends_when_the_reader_of_its_lines_is_gone(tmp_path: Path) -> None:
    command = f"exec {shlex.quote(sys.executable)} -m podium up --no-view {' '.join(QUICK)} --workload none | head -1"
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    ran = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("12 nodes on http://127.0.0.1:")


def test_the_live_view_heeds_keys_and_gives_the_terminal_back(tmp_path: Path) -> None:
    """In a terminal of 80 × 24, as a user sees it; each line begins with its number."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(XDG_STATE_HOME=str(tmp_path), TERM="xterm")
        os.environ.pop("COLUMNS", None)
        os.environ.pop("LINES", None)
        os.execv(sys.executable, [sys.executable, "-m", "podium", "up", *QUICK, "--demo"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen = ""
    try:
        seen = _read(terminal, r"no node +analytics/training", seen)
        assert re.search(r"worker-8 zone-c cpu [█▏▎▍▌▋▊▉]+░* +\d+%  mem [█▏▎▍▌▋▊▉]+░* +\d+% +\d+ pods", seen)
        assert "waiting: 1 fits nowhere" in seen
        seen = _read(terminal, r"\$ podium explain analytics/training(.|\n)*Rejected", seen)  # the demonstration
        os.write(terminal, b"\x1b")
        seen = _read(terminal, "last placed", "")
        os.write(terminal, b"\t\r")
        seen = _read(terminal, r"── pod analytics/training ─(.|\n)*What would unblock it", "")
        os.write(terminal, b"q/gpu-0\r?")
        seen = _read(terminal, r'1 node of 12, filter "gpu-0"(.|\n)*keys of the live view', "")
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        seen = _read(terminal, r"\n1\|── keys of the live view ─{90}(.|\n)*\n30\|", "")
        assert all(f"\n{row}|" in seen for row in range(1, 31)), "what was on the terminal before is still there"
        os.write(terminal, b"q\x03")
        seen = _read(terminal, "nothing more is printed", "")
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    left = seen.partition(LEFT)[2]
    assert re.search(r"first pod placed .*(.|\n)*\d+ pods placed, 1 without a node", left)
    assert "What would unblock it" in left


def _read(terminal: int, pattern: str, seen: str) -> str:
    """What the terminal shows until something like this is in it, or until it is closed."""
    end = time.monotonic() + 60
    while not re.search(pattern, seen):
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"{pattern} was not shown:\n{seen[-3000:]}"
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        text = more.decode(errors="replace").replace("\x1b[?1049l", LEFT)
        seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", re.sub(r"\x1b\[(\d+);1H\x1b\[K", r"\n\1|", text))
    return seen
