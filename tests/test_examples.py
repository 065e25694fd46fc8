"""Every configuration in examples/ can be used as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.podium.cli.command import podium

EXAMPLES = Path(__file__).parent.parent / "examples"
CONFIGURATIONS = sorted(EXAMPLES.glob("config/**/*.yaml"))


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.stem)
def test_podium_check_finds_nothing_wrong(file: Path) -> None:
    ran = podium("check", str(file), "-o", "json")
    found = json.loads(ran.out)
    assert ran.code == 0, ran.out
    assert (found["problems"], found["warnings"]) == ([], [])


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.stem)
def test_an_example_enables_the_plugin_it_is_named_after(file: Path) -> None:
    profiles = json.loads(podium("check", str(file), "-o", "json").out)["config"]["profiles"]
    points = [point for profile in profiles for point in profile["plugins"].values()]
    enabled = {entry["name"].lower() for point in points for entry in point.get("enabled", ())}
    assert file.stem.replace("-", "") in enabled


def test_there_are_examples() -> None:
    assert len(CONFIGURATIONS) >= 5
