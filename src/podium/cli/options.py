"""Defines options that several commands share, so that they are spelt and explained the same way."""

from enum import StrEnum
from typing import Annotated

import typer

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


class Output(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


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
