"""Judges policies on a scenario, for `podium evaluate --objective`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from podium.cli.console import console, echo, echo_data, print_table, progress_bar, table
from podium.cli.errors import InputError
from podium.cli.options import Output

if TYPE_CHECKING:
    from podium_lab.training.judging import ScenarioRow


def evaluate_on_scenario(
    policy: str | None,
    objective: str,
    scenario: str | None,
    seeds: Sequence[int],
    against: str | None,
    workers: int,
    output: Output,
) -> None:
    """Play the episodes of all policies, and print what each came to."""
    from podium_lab.environments.built_in import chosen_scenario
    from podium_lab.learning.extra import LearningError
    from podium_lab.models.heuristics import HEURISTICS, OBJECTIVES
    from podium_lab.simulator.scenario import ScenarioError
    from podium_lab.training.judging import RANDOM, judged

    if objective not in OBJECTIVES:
        raise InputError(f'--objective: there is no objective "{objective}"; write one of {", ".join(OBJECTIVES)}')
    if policy is None:
        raise InputError("POLICY is missing; write an .onnx file, the URL of a model, or the name of a heuristic")
    others = (*HEURISTICS, RANDOM) if against is None else tuple(name for name in against.split(",") if name)
    policies = tuple(dict.fromkeys((policy, *others)))
    rows: list[ScenarioRow] = []
    try:
        loaded = chosen_scenario(scenario)
        with progress_bar(len(policies) * len(seeds), "policies and seeds") as report:
            for row in judged(loaded, objective, policies, seeds, workers):
                rows.append(row)
                report(f"{row.policy}, seed {row.seed}", True)
    except (LearningError, ScenarioError) as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    except KeyboardInterrupt:
        echo("Stopped.", err=True)
        raise typer.Exit(1) from None
    if output is Output.TABLE:
        _show(rows, policy)
    else:
        echo_data([{"objective": objective, "scenario": scenario or "", **row._asdict()} for row in rows], output)


def _show(rows: list[ScenarioRow], policy: str) -> None:
    from podium_lab.simulator.summary import estimate
    from podium_lab.training.judging import paired

    differences = {each.against: each for each in paired(rows, policy)}
    shown = table()
    for heading in ("policy", "reward", "unplaced", "ahead by", "95 %", "verdict"):
        shown.add_column(heading, justify="left" if heading in ("policy", "verdict") else "right", no_wrap=True)
    for name in dict.fromkeys(row.policy for row in rows):
        own = [row for row in rows if row.policy == name]
        reward = estimate([row.reward for row in own])
        unplaced = sum(row.unplaced for row in own) / len(own)
        each = differences.get(name)
        cells = ["", "", ""]
        if each is not None:
            margin = f"± {each.difference.margin:.4f}" if each.difference.seeds > 1 else ""
            verdict = "better" if each.beats else "worse" if each.below else "even"
            cells = [f"{each.difference.mean:+.4f}", margin, verdict if each.difference.seeds > 1 else ""]
        shown.add_row(_short(name), f"{reward.mean:.4f}", f"{unplaced:.1f}", *cells)
    print_table(console(), shown)
    seeds = len({row.seed for row in rows})
    echo(f"{_short(policy)} against each, paired over {seeds} seeds; reward is the mean of a pod.")


def _short(policy: str) -> str:
    """A policy's name for a table: of a file or a URL, the last part."""
    return policy.rstrip("/").rpartition("/")[2]
