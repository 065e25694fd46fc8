"""Simulates a cluster in virtual time: the engine and any profile, on workloads that are drawn or were recorded.

from podium_lab.simulator import Scenario, simulate

results = simulate("scenario.yaml", seeds="42-51", workers=2)
results.columns["cpu_allocation_pct"]    # numpy arrays, one row per profile, seed and checkpoint
"""

from podium_lab.simulator.results import SimulationResults
from podium_lab.simulator.scenario import Scenario, ScenarioError
from podium_lab.simulator.summary import summarise
from podium_lab.simulator.sweep import simulate

__all__ = ["Scenario", "ScenarioError", "SimulationResults", "simulate", "summarise"]
