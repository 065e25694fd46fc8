"""Defines the options of commands that run units: where, on how many, and where results are kept."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import console, echo, echo_json, print_table, table
from podium.cli.options import ContextOption, KubeconfigOption

if TYPE_CHECKING:
    from podium_lab.units.estimate import UnitEstimate
    from podium_lab.units.run import EngineOptions, UnitRunner
    from podium_lab.units.status import StoreStatus


class UnitEngine(StrEnum):
    """Where units are run."""

    LOCAL = "local"
    KUBERNETES = "kubernetes"
    RAY = "ray"


@dataclass(frozen=True)
class UnitFlags:
    """The options, as they were typed."""

    workers: Annotated[int, typer.Option("--workers", min=1, max=10_000, help="Units that run at a time.")] = 1
    engine: Annotated[
        UnitEngine,
        typer.Option(
            "--engine", help="Where units are run: processes of this machine, Jobs of Kubernetes, or Ray (podium[ray])."
        ),
    ] = UnitEngine.LOCAL
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help="Keep results here, and skip what is there: a folder, or s3://… or gs://… (podium[parquet]).",
        ),
    ] = None
    units: Annotated[
        str | None,
        typer.Option("--units", metavar="I/N", help="Run only part I of N, such as 1/8; needs --store."),
    ] = None
    estimate: Annotated[bool, typer.Option("--estimate", help="Run two units, and say what all will take.")] = False
    image: Annotated[
        str, typer.Option("--image", metavar="IMAGE", help="With kubernetes: the image that pods run.")
    ] = ""
    claim: Annotated[
        str,
        typer.Option("--claim", metavar="PVC", help="With kubernetes: the claim that holds the folder of --store."),
    ] = ""
    secret: Annotated[
        str,
        typer.Option(
            "--secret", metavar="NAME", help="With kubernetes: the Secret whose keys pods get as environment variables."
        ),
    ] = ""
    job_namespace: Annotated[
        str,
        typer.Option(
            "--job-namespace", metavar="NAME", help="With kubernetes: where Jobs are made; else that of the context."
        ),
    ] = ""
    local_queue: Annotated[
        str, typer.Option("--local-queue", metavar="NAME", help="With kubernetes: the LocalQueue of Kueue to wait in.")
    ] = ""
    kubeconfig: KubeconfigOption = None
    context: ContextOption = None

    def options(self) -> "EngineOptions":
        from podium_lab.units.run import EngineOptions, JobOptions, check_options, read_part

        jobs = JobOptions(
            image=self.image,
            claim=self.claim,
            secret=self.secret,
            namespace=self.job_namespace,
            local_queue=self.local_queue,
            kubeconfig=self.kubeconfig,
            context=self.context,
        )
        found = EngineOptions(engine=self.engine.value, workers=self.workers, part=read_part(self.units), jobs=jobs)
        check_options(found, self.store)
        return found

    @contextmanager
    def runner(self, options: "EngineOptions") -> "Iterator[UnitRunner]":
        """What runs units, with the store that was named, or one that goes when it ends."""
        from podium_lab.units.run import UnitRunner
        from podium_lab.units.store import open_store

        with TemporaryDirectory(prefix="podium-results-") as folder:
            store = open_store(self.store or folder)
            with UnitRunner(store, options, on_notice=lambda sentence: echo(sentence, err=True)) as runner:
                yield runner

    def command(self) -> str:
        """What was typed, without the choice of a part: what finishes all units."""
        words = sys.argv[1:]
        if "--units" in words:
            at = words.index("--units")
            del words[at : at + 2]
        return shlex.join(["podium", *(word for word in words if not word.startswith("--units="))])

    def say_part(self, options: "EngineOptions", done: int, units: int) -> None:
        """What a part of the units came to; the answer is for whoever starts the command without --units."""
        echo(f"part {options.part}: {done:,} of all {units:,} units have a result in {self.store}")
        if done == units:
            echo("the same command without --units writes the results")


def print_estimate(estimate: "UnitEstimate", as_data: bool) -> None:
    if as_data:
        echo_json(estimate.to_data())
        return
    for sentence in estimate.sentences():
        echo(sentence)


def print_status(status: "StoreStatus") -> None:
    """What a store holds, as a table with what is damaged below it."""
    from podium_lab.units.progress import duration_words

    rows = table()
    for heading in ("plan", "what"):
        rows.add_column(heading, no_wrap=heading == "plan")
    for heading in ("units", "done", "damaged", "per min", "left"):
        rows.add_column(heading, justify="right", no_wrap=True)
    for each in status.plans:
        left = "" if each.seconds_left is None else duration_words(each.seconds_left)
        counts = f"{each.units:,}", f"{each.done:,}", f"{len(each.damaged):,}", f"{each.per_minute:.1f}"
        rows.add_row(each.plan[:8], each.what, *counts, left)
    print_table(console(), rows)
    for sentence in [sentence for each in status.plans for sentence in each.damaged] + status.damaged_inputs:
        echo(sentence)
    if status.leftovers:
        echo(f"{len(status.leftovers)} partial files of processes that were killed; the next run removes them")
    for each in status.plans:
        if each.left and each.command:
            echo(f"to finish {each.plan[:8]}: {each.command}")
