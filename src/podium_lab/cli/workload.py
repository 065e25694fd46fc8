"""Submits a recorded workload to a cluster (`podium workload play`), and makes lists of MIG shapes (`mig`)."""

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.commands import Commands
from podium.cli.console import echo
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.files import writing
from podium.cli.options import ContextOption, KubeconfigOption

app = Commands(name="workload", help="Recorded and made workloads.", no_args_is_help=True)


@app.callback()
def workload() -> None:
    """Recorded workloads on a live cluster, and lists that are made."""


@app.command()
def play(
    file: Annotated[str, typer.Argument(metavar="FILE.csv", help="A workload of the QoS broker.")],
    speed: Annotated[float, typer.Option("--speed", metavar="X", help="Times run X times as fast.")] = 1.0,
    duration: Annotated[
        float, typer.Option("--duration", metavar="SECONDS", min=0, help="How long the experiment is, in its own time.")
    ] = 1800.0,
    scheduler_name: Annotated[
        str, typer.Option("--scheduler-name", metavar="NAME", help="The scheduler that is to place the pods.")
    ] = "default-scheduler",
    leave: Annotated[bool, typer.Option("--leave", help="Leave what is still there at the end.")] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Create the Deployments and Jobs of a broker workload at their times, and delete them when theirs is over.

    PriorityClasses that the workload names are created first. Works on any cluster, also on that of podium up.

    Example: podium workload play workload.csv --speed 10
    """
    import asyncio

    from podium.client import load_access
    from podium_lab.simulator.traces.broker import read_workload
    from podium_lab.workload_player import PRIORITIES, priority_classes, submission
    from podium_lab.workload_player import play as play_workload

    if not 0 < speed <= 1000:
        raise InputError(f"--speed {speed:g}: write a number above 0, at most 1000")
    requests, oddities = read_workload(Path(file), PRIORITIES)
    submissions = [submission(each, scheduler_name, speed, duration) for each in requests if each.at < duration]
    if not submissions:
        raise InputError(f"{file}: all rows come after the end of the experiment; give a longer one with --duration")
    if len(submissions) < len(requests):
        oddities.append(f"{file}: {len(requests) - len(submissions)} of {len(requests)} rows come after the end")
    for oddity in oddities:
        echo(oddity, err=True)
    access = load_access(kubeconfig, context=context)
    failed = asyncio.run(play_workload(access, priority_classes(), submissions, speed=speed, leave=leave, say=echo))
    if failed:
        raise typer.Exit(ANSWER_IS_NO)


@app.command()
def mig(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where the lists are written.")],
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="MODEL", help="A100-40GB, A100-80GB, H100-80GB or H200-141GB.")
    ] = "A100-40GB",
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=100_000, help="Nodes, of 8 GPUs each.")] = 100,
    pods: Annotated[int, typer.Option("--pods", min=1, max=1_000_000, help="Pods.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="What pods are drawn by.")] = 1,
    mix: Annotated[
        str | None,
        typer.Option("--mix", metavar="SIZE=WEIGHT,…", help="How often pods ask for 1g, 2g, 3g, 4g, 7g or none."),
    ] = None,
) -> None:
    """Write a node list and a pod list of MIG shapes, in the openb format: for podium simulate, train and evaluate.

    Example: podium workload mig mig --gpu H100-80GB --mix 1g=3,2g=2,7g=1
    """
    from podium_lab.simulator.traces.mig_lists import write_mig_lists

    weights = None if mix is None else _weights(mix)
    with writing(folder):
        for path in write_mig_lists(Path(folder), gpu, nodes, pods, seed, weights):
            echo(str(path))


def _weights(text: str) -> dict[str, float]:
    found = {}
    for part in text.split(","):
        name, _, weight = part.partition("=")
        try:
            found[name] = float(weight)
        except ValueError:
            raise InputError(f'--mix: "{part}" is no size with a weight; write such as 1g=3,7g=1') from None
    return found
