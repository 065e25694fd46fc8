"""`podium up -d`, `podium status` and `podium down`: clusters in the background, and what becomes of failed starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium_cluster.up.running_clusters import RunningCluster, end, registered, running_clusters
from tests.podium_cluster.up.up_process import PodiumUp
from tools.kit.forked import folder_with_podium

UP = ("up", "-d", "--port", "0", "--qos-port", "0", "--nodes", "3", "--workload", "none")
FAILS = """\
from podium import Plugin
class Fails(Plugin):
    def __init__(self, args, handle):
        open("/nonexistent")
    def score_node(self, cycle, node):
        return 1
"""


class User:
    """Types commands of podium, with a folder for state of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {**os.environ, "XDG_STATE_HOME": str(folder), "COLUMNS": "80"}

    def podium(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [folder_with_podium() / "podium", *arguments],
            env=self._environment,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def status(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.podium("status", "-o", "json").stdout)
        return found

    def files(self) -> set[str]:
        return {file.name for file in (self.folder / "podium").glob("*")}


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    found = User(tmp_path)
    yield found
    found.podium("down", "--all")


def test_a_cluster_in_the_background_is_listed_found_again_and_ended(user: User) -> None:
    warned = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    warned += "profiles: [{pluginConfig: [{name: NodeResourceFit, args: {}}]}]\n"
    ran = user.podium(*UP, "--config", "-", stdin=warned)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("warning: <stdin>:3: ")
    [found] = user.status()
    port = found["port"]
    assert (found["nodes"], found["pods"]) == (3, 0)
    log, kubeconfig = Path(found["log"]), Path(found["kubeconfig"])
    assert ran.stdout.splitlines() == [
        f"3 nodes on http://127.0.0.1:{port}, 0 objects created",
        f"export KUBECONFIG={kubeconfig}",
        "kubectl get pods -A -o wide",
        f"dashboard: http://127.0.0.1:{port}/dashboard/",
        f"it runs in the background (process {found['pid']}) and logs to {log}",
        "podium status shows it, podium down ends it",
    ]
    assert user.files() == {log.name, kubeconfig.name, f"up-{port}.json"}
    assert log.stat().st_mode & 0o077 == 0
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30) as answer:
        assert answer.status == 200
    again = user.podium("up", "-d", "--port", str(port))
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == (
        f"--port {port}: podium up runs there since {found['since']} (process {found['pid']}): use that one, end it "
        f"with podium down --port {port}, or give another port\n"
    )
    elsewhere = user.podium("down", "--port", "1")
    assert (elsewhere.returncode, elsewhere.stderr) == (2, f"--port 1: no podium up runs there; one runs on {port}\n")
    table = user.podium("status").stdout
    assert str(kubeconfig) in table
    assert str(log) in table
    ended = user.podium("down")
    assert (ended.returncode, ended.stdout) == (0, f"ended podium up on port {port} (process {found['pid']})\n")
    assert user.files() == {log.name}
    assert log.read_text().startswith("3 nodes on ")
    for command in ("status", "down"):
        none = user.podium(command)
        assert (none.returncode, none.stdout) == (1, "")
        assert none.stderr == "no podium up runs here; podium up -d starts one\n"


def test_a_start_that_fails_says_why_and_leaves_nothing(user: User) -> None:
    (user.folder / "fails.py").write_text(FAILS)
    ran = user.podium(*UP, "--plugin", "fails.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    error = "FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent'"
    assert ran.stderr == f'initializing plugin "Fails": {error} (fails.py:4)\n'
    ran = user.podium(*UP, "--config", "none.yaml")
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        2,
        "",
        "none.yaml: cannot be read: No such file or directory\n",
    )
    assert user.files() == set()


def test_one_in_the_foreground_is_listed_and_ended_too(user: User) -> None:
    with PodiumUp("--port", "0", "--workload", "none", "--qos-port", "0", home=user.folder) as up:
        [found] = user.status()
        assert (found["pid"], found["log"]) == (up.process.pid, "")
        assert user.podium("down").returncode == 0
        assert up.process.wait(60) == 0


def test_what_a_killed_one_left_is_not_taken_for_a_cluster(user: User) -> None:
    with PodiumUp("--port", "0", "--workload", "none", "--qos-port", "0", home=user.folder) as up:
        user.podium("status")
        up.stop(signal.SIGKILL)
        assert [name for name in user.files() if name.endswith(".json")] != []
        assert user.status() == []
        assert [name for name in user.files() if name.endswith(".json")] == []


def test_several_have_to_be_named(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(user.folder))
    (user.folder / "podium").mkdir()
    with registered(cluster(user.folder, 1)), registered(cluster(user.folder, 2)):
        assert [each.port for each in running_clusters()] == [1, 2]
        ran = user.podium("down")
        assert (ran.returncode, ran.stderr) == (
            2,
            "podium up runs on the ports 1, 2: name one with --port, or write --all\n",
        )
        assert user.podium("down", "--all", "--port", "1").returncode == 2
        assert [each["nodes"] for each in user.status()] == [None, None]
        assert "no answer" in user.podium("status").stdout
    assert running_clusters() == []


def test_a_process_that_only_has_the_number_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "podium").mkdir()
    with registered(cluster(tmp_path, 1)):
        [found] = running_clusters()
    with subprocess.Popen(["sleep", "60"]) as other:
        assert end(RunningCluster(1, other.pid, found.since, found.url, found.kubeconfig), 0.0)
        assert other.poll() is None
        other.kill()


def test_a_file_that_says_nothing_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "podium").mkdir()
    with registered(cluster(tmp_path, 1)):
        (tmp_path / "podium" / "up-1.json").write_text("{")
        assert running_clusters() == []


def test_a_demonstration_cannot_be_in_the_background(user: User) -> None:
    ran = user.podium("up", "-d", "--demo")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "leave -d or --demo out" in ran.stderr


def cluster(home: Path, port: int) -> RunningCluster:
    kubeconfig = str(home / "podium" / f"kubeconfig-{port}")
    return RunningCluster(port, os.getpid(), "2026-01-01T00:00:00Z", f"http://127.0.0.1:{port}", kubeconfig)
