"""Defines options that several commands share, so that they are spelt and explained the same way."""

from enum import StrEnum
from typing import Annotated

import typer

from podium.cli.errors import InputError

PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE:CLASS|FILE.py",
        help="A plugin that is not installed; modules in the current folder are found. Repeatable.",
    ),
]


FeatureGatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=true,…",
        help="As of kube-scheduler: GenericWorkload, GangScheduling, TopologyAwareWorkloadScheduling and "
        "WorkloadAwarePreemption are off unless named here. Repeatable.",
    ),
]

KubeconfigOption = Annotated[
    str | None,
    typer.Option("--kubeconfig", metavar="FILE", help="Else $KUBECONFIG, ~/.kube/config, or what a pod is given."),
]

ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="The kubeconfig's context; else its current one.")
]


NamespaceOption = Annotated[
    str | None,
    typer.Option("-n", "--namespace", metavar="NAME", help="Of a pod named without one; else that of the context."),
]

SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="URL",
        help="Where a scheduler serves /configz, such as https://127.0.0.1:10259 of kubectl port-forward; else "
        "podium up is asked.",
    ),
]


class Output(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")]


def chosen_output(output: Output, json: bool) -> Output:
    """What `-o` says, where `--json` is another way to write `-o json`."""
    if json and output is Output.YAML:
        raise InputError("--json and -o yaml contradict each other; write one of them")
    return Output.JSON if json else output


def given_seeds(text: str) -> list[int]:
    """The seeds of `--seeds`: one, a range, or several with commas."""
    from podium.config.seeds import parse_seeds

    try:
        return parse_seeds(text)
    except ValueError as error:
        raise InputError(f"--seeds: {error}") from None


QosPortOption = Annotated[
    int,
    typer.Option(
        "--qos-port",
        metavar="PORT",
        min=0,
        max=65535,
        help="Where the QoS page of QosAware is served, on loopback; 0 serves none.",
    ),
]
