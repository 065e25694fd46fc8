"""The wheel in an environment of its own: nothing of the checkout is on its path, and it has all that users need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, clean_environment
from tools.testbed import ControlPlane
from tools.testbed.objects import make_node, make_pod


def _ran(folder: Path, installed: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment() | {"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        [installed / command[0], *command[1:]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_has_types_samples_definitions_and_policies(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"podium/py.typed", "podium/samples/cluster.yaml", "podium/commit.txt"} <= names
    assert any(name.startswith("podium_plugins/crds/") for name in names)
    examples = {str(file.relative_to(ROOT)) for file in (ROOT / "examples").rglob("*") if file.is_file()}
    assert {f"podium/{name}" for name in examples} == {name for name in names if name.startswith("podium/examples/")}
    packages = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert packages == {"kubecel", "podium", "podium_cluster", "podium_dashboard", "podium_lab", "podium_plugins"}
    assert {"podium_dashboard/static/index.html", "podium_dashboard/static/licences.txt"} <= names


def test_wheels_from_the_sdist_and_from_the_repository_are_the_same(
    repository: Path, sdist: Path, wheel: Path, tmp_path: Path
) -> None:
    left = repository / "build" / "lib" / "podium" / "left_by_an_older_build.py"
    left.parent.mkdir(parents=True)
    left.touch()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", tmp_path, repository], check=True, env=clean_environment())
    direct = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
    assert sorted(direct.namelist()) == sorted(zipfile.ZipFile(wheel).namelist())
    assert direct.read("podium/commit.txt").decode().strip() == _head(repository)
    with tarfile.open(sdist) as sources:
        assert not any("/tests/" in name for name in sources.getnames())


def _head(repository: Path) -> str:
    asked = ["git", "rev-parse", "HEAD"]
    return subprocess.run(asked, cwd=repository, capture_output=True, text=True, check=True).stdout.strip()


def test_it_runs_without_the_checkout(repository: Path, installed: Path, tmp_path: Path) -> None:
    program = "import podium; print(podium.__file__)"
    assert str(ROOT) not in _ran(tmp_path, installed, "python", "-c", program).stdout
    version = _ran(tmp_path, installed, "podium", "--version").stdout
    commit = _head(repository)[:12]
    assert re.fullmatch(rf"podium \S+ \({commit}\), decides as kube-scheduler v1\.36\.\d+\n", version)
    crds = _ran(tmp_path, installed, "podium", "crds", "-o", "name")
    assert (crds.returncode, "podgroups" in crds.stdout) == (0, True), crds.stderr
    listed = _ran(tmp_path, installed, "podium", "examples", "-o", "json")  # pip has compiled those in Python
    assert (listed.returncode, ".pyc" in listed.stdout) == (0, False), listed.stderr
    demo = _ran(tmp_path, installed, "podium", "up", "--demo", "--port", "0")
    assert demo.returncode == 0, demo.stderr
    explained = _ran(tmp_path, installed, "podium", "explain", "shop/web-4", "--from", "sample:cluster")
    assert "shop/web-4 fits" in explained.stdout, explained.stderr


@pytest.mark.long
def test_pytest_finds_the_fixture_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_default.py").write_text(
        "from podium.testing import node, pod\n"
        "def test_the_larger_node_wins(podium_cluster):\n"
        "    cluster = podium_cluster(objects=[node('small', cpu=1), node('large', cpu=8)])\n"
        "    assert cluster.place(pod(cpu='500m')).node == 'large'\n"
    )
    ran = _ran(tmp_path, installed, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
    started = _ran(tmp_path, installed, "podium", "plugins", "new", "quiet-nodes")
    assert started.returncode == 0, started.stderr
    ran = _ran(tmp_path / "quiet-nodes", installed, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_kubectl_finds_it_as_a_plugin(
    installed: Path, tmp_path: Path, empty_control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane = empty_control_plane
    plane.kubectl("create", "namespace", "shop")
    plane.client.create_all([make_node("only", cpu="2"), make_pod("web", namespace="shop", cpu="1")])
    monkeypatch.setenv("PATH", f"{installed}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    said = plane.kubectl("podium", "explain", "web", "-n", "shop", "--kubeconfig", str(plane.kubeconfig_path))
    assert "shop/web fits: goes to only" in said
