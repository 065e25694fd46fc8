"""Defines the options of `podium train` for PPO and DQN."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer


class TrainingAlgorithm(StrEnum):
    """How a policy is found."""

    CMA_ES = "cma-es"
    PPO = "ppo"
    DQN = "dqn"


@dataclass(frozen=True)
class ScorerFlags:
    """The options, as they were typed; None: the default of the settings."""

    algorithm: Annotated[
        TrainingAlgorithm,
        typer.Option("--algorithm", help="cma-es: weights on pod lists; ppo, dqn: a network on a scenario."),
    ] = TrainingAlgorithm.CMA_ES
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            metavar="NAME",
            help="With ppo, dqn: least-allocated, most-allocated, least-connections, latency-aware, fragmentation.",
        ),
    ] = "least-allocated"
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="FILE", help="With ppo, dqn: the scenario; else a built-in one."),
    ] = None
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="With ppo, dqn: decisions; 1,000,000.")] = None
    cloning: Annotated[
        int | None,
        typer.Option("--cloning", min=1, help="With ppo, dqn: decisions to learn the heuristic first; 200,000."),
    ] = None
    clusters: Annotated[
        int | None, typer.Option("--clusters", min=1, help="With ppo, dqn: clusters at a time; 64.")
    ] = None
    horizon: Annotated[
        int | None, typer.Option("--horizon", min=8, help="With ppo, dqn: decisions of each between updates; 128.")
    ] = None
    episodes: Annotated[
        int | None, typer.Option("--episodes", min=1, max=10_000, help="With ppo, dqn: different episodes; 256.")
    ] = None
    validation: Annotated[
        int | None,
        typer.Option("--validation", min=1, max=10_000, help="With ppo, dqn: episodes to choose the best by; 32."),
    ] = None
    width: Annotated[int | None, typer.Option("--width", min=1, help="With ppo, dqn: units of a layer; 64.")] = None
    gamma: Annotated[
        float | None, typer.Option("--gamma", min=0, max=0.9999, help="With ppo, dqn: the discount; 0.99.")
    ] = None
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", min=0, help="With ppo, dqn; 0.0003.")] = None

    def settings(self) -> dict[str, int | float]:
        """The settings that were typed."""
        typed = {
            "steps": self.steps,
            "cloning": self.cloning,
            "clusters": self.clusters,
            "horizon": self.horizon,
            "episodes": self.episodes,
            "validation": self.validation,
            "units": self.width,
            "gamma": self.gamma,
            "learning_rate": self.learning_rate,
        }
        return {name: value for name, value in typed.items() if value is not None}
