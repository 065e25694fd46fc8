"""A missing component is a skip with a reason, or a failure where it is required; each seen from outside."""

import os
import subprocess
import sys
from pathlib import Path

from tests.tools.testbed import test_cluster

ONE_TEST = f"{Path(test_cluster.__file__)}::test_an_empty_api_server_is_ready"


def run_without_go(tmp_path: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PODIUM"))}
    kept |= {"PATH": "/nonexistent", "XDG_CACHE_HOME": str(tmp_path)} | environment
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", ONE_TEST]
    return subprocess.run(command, env=kept, capture_output=True, text=True, check=False)


def test_a_missing_part_is_skipped_and_the_summary_says_why_in_one_line(tmp_path: Path) -> None:
    result = run_without_go(tmp_path)
    assert result.returncode == 0
    assert "1 skipped" in result.stdout
    lines = [line for line in result.stdout.splitlines() if line.startswith("Test bed incomplete, 1 skipped. ")]
    assert len(lines) == 1
    assert "Go: no `go` command is on the PATH" in lines[0]


def test_a_missing_part_is_a_failure_where_it_is_required(tmp_path: Path) -> None:
    result = run_without_go(tmp_path, PODIUM_REQUIRE_TESTBED="1")
    assert result.returncode == 1
    assert "Go: no `go` command is on the PATH" in result.stdout
    assert "1 error" in result.stdout
