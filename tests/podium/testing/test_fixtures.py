"""The pytest fixture as the author of a plugin has it: in a pytest of its own, which knows nothing of the checkout."""

import subprocess
import sys
from pathlib import Path

TEST = """
from podium import Plugin
from podium.testing import node, pod


class Quiet(Plugin):
    def score_node(self, cycle, node):
        return 100 if "quiet" in node.labels else 0


def test_the_quiet_node_wins(podium_cluster):
    placed = podium_cluster(Quiet, objects=[node("loud"), node("calm", labels={"quiet": ""})]).place(pod())
    assert placed.node == "NODE"
"""


def run(folder: Path, expected: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_quiet.py").write_text(TEST.replace("NODE", expected))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "podium.testing.fixtures", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_test_of_five_lines_passes(tmp_path: Path) -> None:
    ran = run(tmp_path, "calm")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_test_that_fails_shows_what_was_decided(tmp_path: Path) -> None:
    ran = run(tmp_path, "loud")
    assert ran.returncode == 1
    assert "Decisions of podium_cluster" in ran.stdout
    assert "default/pod: bound on calm" in ran.stdout
    assert "Quiet 100" in ran.stdout


def test_pytest_without_the_fixture_loads_nothing_of_podium() -> None:
    program = "import sys, podium.testing.fixtures; print([m for m in sys.modules if m.startswith('podium.')])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "['podium.testing', 'podium.testing.fixtures']\n"
