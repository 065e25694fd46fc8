"""Trains a placement policy, on pod lists or, by PPO or DQN, on a scenario (`podium train`)."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from podium.cli.console import echo, echo_data, progress_bar
from podium.cli.errors import InputError
from podium.cli.files import writing
from podium.cli.options import Output, OutputOption, given_seeds, option_groups
from podium.framework.clock import SystemClock
from podium.packages import version
from podium_lab.cli.unit_options import UnitFlags, print_estimate


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


@option_groups
def train(
    *,
    scorer: ScorerFlags,
    form: Annotated[
        str, typer.Option("--form", metavar="FORM", help="S1, S2, A, Bn, B, C, J, JB: which terms; N, NC: a network.")
    ] = "S1",
    data: Annotated[str, typer.Option("--data", metavar="DIR", help="Where node list and pod lists are.")] = ".",
    lists: Annotated[
        str, typer.Option("--lists", metavar="A,B", help="Pod lists to train on, by name or path.")
    ] = "default,gpushare40,gpuspec33,multigpu40",
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="A-B,C", help="Seeds of the search, one policy each: 1, 1-3 or 1,5.")
    ] = "1",
    start: Annotated[
        str | None,
        typer.Option("--start", metavar="POLICY", help="Start from the weights of a policy; a network corrects it."),
    ] = None,
    generations: Annotated[int | None, typer.Option("--generations", min=1, help="Other than the form's.")] = None,
    population: Annotated[
        int | None, typer.Option("--population", min=4, help="Candidates per generation; overrides the form's.")
    ] = None,
    mixes: Annotated[
        int, typer.Option("--mixes", min=0, help="Mixes of the lists in a generation: more, to suit other lists.")
    ] = 3,
    sigma: Annotated[
        float, typer.Option("--sigma", min=0, help="Spread of the first candidates; 0: the form's.")
    ] = 0.0,
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Where searches and policies are written.")
    ] = "policies",
    output: OutputOption = Output.TABLE,
    flags: UnitFlags,
) -> None:
    """Train a placement policy by simulation, and write it as a file.

    cma-es searches for the weights of LearnedScore on pod lists, and needs podium[learn]. ppo and dqn train a network
    for any objective on a scenario, write it as ONNX for ModelScore, and need podium[train].

    Stopped, it goes on where it was when started again with the same options; the same seed gives the same file. With
    cma-es every candidate of a generation is a unit; parts (--units) work on one search together.

    Example: podium train --form S1 --data openb --seeds 1-3 --out policies

    Example: podium train --form S1 --data openb --store trained --engine ray

    Example: podium train --algorithm ppo --objective most-allocated --scenario cluster.yaml --out policies
    """
    if scorer.algorithm is not TrainingAlgorithm.CMA_ES:
        train_scorers(scorer, given_seeds(seeds), Path(out), output)
        return
    from podium_lab.learned.policy_file import Calibration, PolicyError, encoded, path_of, read_policy
    from podium_lab.learning.extra import LearningError
    from podium_lab.learning.forms import FORMS, NETWORKS, ScoreForm

    if form not in FORMS and form not in NETWORKS:
        raise InputError(f'--form: there is no form "{form}"; write one of {", ".join((*FORMS, *NETWORKS))}')
    folder = Path(out)
    results: list[dict[str, Any]] = []
    try:
        from podium_lab.learning.lists import find_lists, find_nodes
        from podium_lab.learning.policy_making import DIGITS, make_policy
        from podium_lab.learning.train import OFFSET, SCALE, Training, seeds_seen
        from podium_lab.learning.train import train as search_for
        from podium_lab.learning.training_units import StoredSearch, UnitFigures, estimated

        options = flags.options()
        find_nodes(Path(data))
        names = tuple(find_lists(lists, Path(data)).values())
        begun = None if start is None else read_policy(path_of(start))
        weights = None if begun is None else tuple(map(tuple, begun.matrix().tolist()))
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        chosen = FORMS[form] if form in FORMS else NETWORKS[form]
        for number in given_seeds(seeds):
            sizes = generations or chosen.generations, population or chosen.population
            settings = Training(form, number, data, names, *sizes, weights, mixes, sigma)
            name = f"{form}-{number}"
            with flags.runner(options) as runner:
                if flags.estimate:
                    estimate = estimated(settings, runner, options)
                    results.append({"name": name, **estimate.to_data()})
                    if output is Output.TABLE:
                        print_estimate(estimate, as_data=False)
                    continue
                # Every part comes to the same search, and one of them writes it.
                saved = StoredSearch(folder / f"{name}.search", runner.store) if options.part.number == 1 else None
                figures = UnitFigures(runner, flags.command(), options.part)
                with progress_bar(settings.generations, f"{name}: generation 1") as report:
                    found = search_for(settings, saved, figures, _generation_report(name, report))
            if saved is None:
                echo(f"part {options.part} of {name} is done; part 1 writes the policy", err=output is not Output.TABLE)
                continue
            provenance = {
                "command": _command(settings, start),
                "seeds": seeds_seen(settings),
                "budget": f"{settings.generations} generations of {settings.population}",
                "search": number,
            }
            if begun is not None:
                before = {name: what for name, what in begun.provenance.items() if name != "seeds"}
                provenance["start"] = {"sha256": begun.sha256, **before}
                provenance["seeds"] = sorted(begun.seeds | set(seeds_seen(settings)))
            linear, network = settings.scorer(found.result).weights, None
            if not isinstance(chosen, ScoreForm):
                network = chosen.network(found.result, DIGITS)
            calibration = Calibration(OFFSET, SCALE)
            policy = make_policy(name, linear, calibration, Path(data), names, provenance, network=network)
            with writing(folder):
                (folder / f"{name}.json").write_bytes(encoded(policy))
            if output is Output.TABLE:
                echo(f"{folder / name}.json")
            written = {"name": name, "file": f"{folder / name}.json"}
            results.append({**written, "values": policy.weights, "provenance": policy.provenance})
    except (LearningError, PolicyError) as error:
        raise InputError(str(error)) from None
    except KeyboardInterrupt:
        echo("Stopped; the same command continues from the last whole generation.", err=True)
        raise typer.Exit(1) from None
    if output is not Output.TABLE:
        echo_data(results, output)


def _command(settings: Training, start: str | None) -> str:
    """What makes the same file again, wherever lists and policies lie."""
    words = ["podium train", f"--form {settings.form}", f"--seeds {settings.seed}"]
    words.append(f"--lists {','.join(Path(each).name for each in settings.lists)}")
    if start is not None:
        words.append(f"--start {Path(start).name}")
    words += [f"--mixes {settings.mixes}", f"--generations {settings.generations}"]
    words += [f"--population {settings.population}", *([f"--sigma {settings.sigma:g}"] if settings.sigma else [])]
    return " ".join(words)


def _generation_report(name: str, report: Callable[[str, int], None]) -> Callable[[int, float, float], None]:
    """Says what came of each generation: beside the bar, or line by line where no terminal is."""

    def generation_done(generation: int, mean: float, best: float) -> None:
        line = f"{name}: generation {generation}, allocation {mean:.2f} % on average, {best:.2f} % at best"
        report(line, generation)
        if not sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)

    return generation_done


if TYPE_CHECKING:
    from podium_lab.learning.train import Training
    from podium_lab.training.runs import Progress

EVERY = 8
"""Updates between two lines where no terminal is."""


def train_scorers(flags: ScorerFlags, seeds: Sequence[int], out: Path, output: Output) -> None:
    """One scorer for each seed."""
    from podium_lab.learning.extra import LearningError
    from podium_lab.models.heuristics import OBJECTIVES
    from podium_lab.models.scorer_file import ScorerFileError
    from podium_lab.simulator.scenario import ScenarioError

    if flags.objective not in OBJECTIVES:
        known = ", ".join(OBJECTIVES)
        raise InputError(f'--objective: there is no objective "{flags.objective}"; write one of {known}')
    try:
        results = [_train_one(flags, seed, out, output) for seed in seeds]
    except (LearningError, ScenarioError, ScorerFileError) as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    except KeyboardInterrupt:
        echo("Stopped; the same command continues from there.", err=True)
        raise typer.Exit(1) from None
    if output is not Output.TABLE:
        echo_data(results, output)


def _train_one(flags: ScorerFlags, seed: int, out: Path, output: Output) -> dict[str, Any]:
    """Train with one seed, and write the file: its name, how good it is, and where it comes from."""
    from podium_lab.environments.built_in import chosen_scenario
    from podium_lab.simulator.scenario import as_written
    from podium_lab.training.runs import file_of, provenance_of, train
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
    words = f"podium train --algorithm {settings.algorithm} --objective {settings.objective}{scenario}"
    command = f"{words} --seeds {settings.seed}"
    file = out / f"{name}.onnx"
    with writing(out):
        file.write_bytes(file_of(settings, trained, command, version()))
    found = (
        f"validation reward {trained.best:.4f}, that of the best heuristic ({trained.teacher}) {trained.heuristic:.4f}"
    )
    echo(f"{name}: {found}, same node in {trained.agreement:.1%} of decisions", err=True)
    if output is Output.TABLE:
        echo(str(file))
    provenance = {"codeVersion": version(), **provenance_of(settings, command)}
    return {"name": name, "file": str(file), "values": trained.values(), "provenance": provenance}


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
