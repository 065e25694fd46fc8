"""Defines options that several commands share, so that they are spelt and explained the same way.

Options that belong together are the fields of a dataclass; `option_groups` lets a command take such records.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, get_type_hints

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

KubernetesVersionOption = Annotated[
    str | None,
    typer.Option(
        "--kubernetes-version",
        metavar="1.35|1.36|1.37",
        help="Decide as the kube-scheduler of this minor; else of the API server's, or the newest.",
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


def with_default(args: Sequence[str], option: str, value: str) -> list[str]:
    """What was typed, with a value for an option that stands alone.

    >>> with_default(["--devices", "--nodes", "3", "--devices=8"], "--devices", "4")
    ['--devices=4', '--nodes', '3', '--devices=8']
    """
    following = [*args[1:], "-"][: len(args)]
    is_alone = [each == option and after.startswith("-") for each, after in zip(args, following, strict=True)]
    return [f"{each}={value}" if alone else each for each, alone in zip(args, is_alone, strict=True)]


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


def option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take options in records: of a parameter that is a dataclass, each field becomes an option.

    @option_groups
    def serve(*, endpoints: ServingFlags, verbose: bool = False) -> None: ...
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if (group := groups.get(parameter.name)) is None:
            options.append(parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(group, include_extras=True)
        options += [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=types[each.name]
            )
            for each in fields(group)
        ]

    @wraps(command)
    def with_records(**given: Any) -> None:
        records = {
            name: group(**{each.name: given.pop(each.name) for each in fields(group)}) for name, group in groups.items()
        }
        command(**given, **records)

    with_records.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    with_records.__annotations__ = {each.name: each.annotation for each in options}
    return with_records
