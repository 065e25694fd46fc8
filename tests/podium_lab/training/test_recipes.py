"""The agents in examples/ work: the single file on JAX, and Stable-Baselines3 where it's installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AGENTS = Path(__file__).parents[3] / "examples" / "agents"

pytestmark = pytest.mark.long  # compiling takes most of the time


def run(file: str, *arguments: str) -> str:
    command = [sys.executable, str(AGENTS / file), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_ppo_in_a_single_file() -> None:
    pytest.importorskip("optax")
    printed = run("ppo_single_file.py", "--updates", "2", "--clusters", "8", "--horizon", "16")
    assert printed.startswith("update 2: mean reward")


def test_maskable_ppo_of_stable_baselines() -> None:
    pytest.importorskip(
        "sb3_contrib", reason="Stable-Baselines3 needs torch: pip install stable-baselines3 sb3-contrib"
    )
    assert "return of the episode:" in run("sb3_maskable_ppo.py", "256")
