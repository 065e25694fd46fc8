"""Trains a placement policy, on pod lists or on a scenario (`podium train`)."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.console import echo, progress_bar
from podium.cli.errors import InputError
from podium.cli.files import writing
from podium.cli.options import given_seeds, option_groups
from podium_lab.cli.scorer_options import ScorerFlags, TrainingAlgorithm
from podium_lab.cli.unit_options import UnitFlags, print_estimate


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
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Where searches and policies are written.")
    ] = "policies",
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
        from podium_lab.cli.train_scorer import train_scorers

        train_scorers(scorer, given_seeds(seeds), Path(out))
        return
    from podium_lab.learned.policy_file import Calibration, PolicyError, encoded, path_of, read_policy
    from podium_lab.learning.extra import LearningError
    from podium_lab.learning.forms import FORMS, NETWORKS, ScoreForm

    if form not in FORMS and form not in NETWORKS:
        raise InputError(f'--form: there is no form "{form}"; write one of {", ".join((*FORMS, *NETWORKS))}')
    folder = Path(out)
    try:
        from podium_lab.learning.lists import find_lists, find_nodes
        from podium_lab.learning.policy_making import DIGITS, make_policy
        from podium_lab.learning.train import OFFSET, SCALE, Training, seeds_seen
        from podium_lab.learning.train import train as search_for
        from podium_lab.learning.training_units import StoredSearch, UnitFigures, estimated

        options = flags.options()
        find_nodes(Path(data))
        names = tuple(find_lists(lists, Path(data)).values())
        weights = None if start is None else tuple(map(tuple, read_policy(path_of(start)).matrix().tolist()))
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        chosen = FORMS[form] if form in FORMS else NETWORKS[form]
        for number in given_seeds(seeds):
            settings = Training(
                form, number, data, names, generations or chosen.generations, population or chosen.population, weights
            )
            name = f"{form}-{number}"
            with flags.runner(options) as runner:
                if flags.estimate:
                    print_estimate(estimated(settings, runner, options), as_data=False)
                    continue
                # Every part comes to the same search, and one of them writes it.
                saved = StoredSearch(folder / f"{name}.search", runner.store) if options.part.number == 1 else None
                figures = UnitFigures(runner, flags.command(), options.part)
                with progress_bar(settings.generations, f"{name}: generation 1") as report:
                    found = search_for(settings, saved, figures, _generation_report(name, report))
            if saved is None:
                echo(f"part {options.part} of {name} is done; part 1 writes the policy")
                continue
            command = (
                f"podium train --form {form} --seeds {number} --lists {','.join(Path(each).name for each in names)}"
            )
            budget = f"{settings.generations} generations of {settings.population}"
            provenance = {"command": command, "seeds": seeds_seen(settings), "budget": budget, "mixes": 16}
            linear, network = settings.scorer(found.result).weights, None
            if not isinstance(chosen, ScoreForm):
                network = chosen.network(found.result, DIGITS)
                provenance["start"] = start
            calibration = Calibration(OFFSET, SCALE)
            policy = make_policy(name, linear, calibration, Path(data), names, provenance, network=network)
            with writing(folder):
                (folder / f"{name}.json").write_bytes(encoded(policy))
            echo(f"{folder / name}.json")
    except (LearningError, PolicyError) as error:
        raise InputError(str(error)) from None
    except KeyboardInterrupt:
        echo("Stopped; the same command continues from the last whole generation.", err=True)
        raise typer.Exit(1) from None


def _generation_report(name: str, report: Callable[[str, int], None]) -> Callable[[int, float, float], None]:
    """Says what came of each generation: beside the bar, or line by line where no terminal is."""

    def generation_done(generation: int, mean: float, best: float) -> None:
        line = f"{name}: generation {generation}, allocation {mean:.2f} % on average, {best:.2f} % at best"
        report(line, generation)
        if not sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)

    return generation_done
