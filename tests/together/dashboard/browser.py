"""Starts Debian's Chromium for tests of the dashboard, and `podium` as a process that serves one."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[3]
CHROMIUM: Final = shutil.which("chromium")
AXE: Final = ROOT / "web/node_modules/axe-core/axe.min.js"
FULL: Final = Path(__file__).parent / "full"
FULL_CLUSTER: Final = (
    *("up", "--no-view", "--port", "0", "--nodes", "12", "--devices", "--feature-gates", "GenericWorkload=true"),
    *("--config", str(FULL / "config.yaml"), "--workload", str(FULL / "workload.yaml")),
)
"""The words of a podium up that has something to show on every page but that of differences."""
ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def required(part: object, what: str) -> None:
    """Skip the test where a part is missing, unless all are required."""
    if part:
        return
    if os.environ.get("PODIUM_REQUIRE_TESTBED") == "1":
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    required(CHROMIUM, "Debian's package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def serving(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A podium that serves a dashboard: its address, and its process."""
    command = [sys.executable, "-m", "podium", *words]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "/dashboard/" in line:
                yield line.split()[-1], process
                return
        raise AssertionError("".join(said))
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=20)
        process.kill()
        process.wait()
