"""Finds the scenario of an environment: the one that is named, or the built-in one."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from podium_lab.simulator.reading import LoadedScenario, load_scenario
from podium_lab.simulator.scenario import Scenario
from podium_lab.simulator.sweep import load


def chosen_scenario(scenario: str | Path | Scenario | LoadedScenario | None) -> LoadedScenario:
    """A scenario, or the built-in one; raises ScenarioError and OSError."""
    if scenario is not None:
        return load(scenario)
    text = resources.files("podium_lab.environments").joinpath("scheduling.yaml").read_text(encoding="utf-8")
    return load_scenario(text, "scheduling.yaml")
