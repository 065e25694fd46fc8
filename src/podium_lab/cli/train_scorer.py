"""Trains a set scorer by PPO or DQN, for `podium train --algorithm`."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from podium.cli.console import echo, progress_bar
from podium.cli.errors import InputError
from podium.cli.files import writing
from podium.framework.clock import SystemClock
from podium.packages import version
from podium_lab.cli.scorer_options import ScorerFlags, TrainingAlgorithm

if TYPE_CHECKING:
    from podium_lab.training.runs import Progress

EVERY = 8
"""Updates between two lines where no terminal is."""


def train_scorers(flags: ScorerFlags, seeds: Sequence[int], out: Path) -> None:
    """One scorer for each seed."""
    from podium_lab.learning.extra import LearningError
    from podium_lab.models.heuristics import OBJECTIVES
    from podium_lab.models.scorer_file import ScorerFileError
    from podium_lab.simulator.scenario import ScenarioError

    if flags.objective not in OBJECTIVES:
        known = ", ".join(OBJECTIVES)
        raise InputError(f'--objective: there is no objective "{flags.objective}"; write one of {known}')
    try:
        for seed in seeds:
            _train_one(flags, seed, out)
    except (LearningError, ScenarioError, ScorerFileError) as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    except KeyboardInterrupt:
        echo("Stopped; the same command continues from there.", err=True)
        raise typer.Exit(1) from None


def _train_one(flags: ScorerFlags, seed: int, out: Path) -> None:
    from podium_lab.environments.built_in import chosen_scenario
    from podium_lab.simulator.scenario import as_written
    from podium_lab.training.runs import file_of, train
    from podium_lab.training.settings import TrainingSettings

    loaded = chosen_scenario(flags.scenario)
    settings = TrainingSettings(
        algorithm="ppo" if flags.algorithm is TrainingAlgorithm.PPO else "dqn",
        objective=flags.objective,
        scenario=flags.scenario or "",
        scenario_hash=hashlib.sha256(msgspec.json.encode(as_written(loaded.scenario))).hexdigest(),
        seed=seed,
        **flags.settings(),  # type: ignore[arg-type]
    )
    name = f"{settings.algorithm}-{settings.objective}-{settings.seed}"
    folder = out / name
    with writing(out):
        folder.mkdir(parents=True, exist_ok=True)
    with progress_bar(settings.updates, f"{name}: compiling") as report:
        trained = train(loaded, settings, folder, SystemClock().now, _report(name, report))
    scenario = f" --scenario {settings.scenario}" if settings.scenario else ""
    command = f"podium train --algorithm {settings.algorithm} --objective {settings.objective}{scenario}"
    file = out / f"{name}.onnx"
    with writing(out):
        file.write_bytes(file_of(settings, trained, f"{command} --seeds {settings.seed}", version()))
    found = (
        f"validation reward {trained.best:.4f}, that of the best heuristic ({trained.teacher}) {trained.heuristic:.4f}"
    )
    echo(f"{name}: {found}, same node in {trained.agreement:.1%} of decisions", err=True)
    echo(str(file))


def _report(name: str, report: Callable[[str, int], None]) -> Callable[[Progress], None]:
    """Shows how far the training is and how long it will still take."""
    began: list[tuple[float, int]] = []

    def progressed(at: Progress) -> None:
        now = time.monotonic()
        began.append((now, at.update))
        first, done = began[min(1, len(began) - 1)]
        each = (now - first) / max(at.update - done, 1)
        left = _time((at.updates - at.update) * each) if len(began) > 2 else "?"
        reward = next((value for tag, value in at.figures.items() if tag.endswith("/reward")), 0.0)
        best = "" if at.best == -float("inf") else f", best {at.best:+.4f} against the heuristic"
        line = f"{name}: {at.phase}, {left} left, reward {reward:.3f}{best}"
        report(line, at.update)
        if not sys.stderr.isatty() and (at.update % EVERY == 0 or at.update == at.updates):
            print(f"{at.update}/{at.updates} {line}", file=sys.stderr, flush=True)

    return progressed


def _time(seconds: float) -> str:
    """
    >>> _time(75), _time(9)
    ('1m15s', '9s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
