"""Defines the options of an election, which all processes that elect a leader have, as kube-scheduler spells them."""

from typing import Annotated

import typer

LeaderElectOption = Annotated[
    str | None,
    typer.Option("--leader-elect", metavar="true|false", help="Work only while holding the lease."),
]
LeaseDurationOption = Annotated[
    str | None, typer.Option("--leader-elect-lease-duration", metavar="DURATION", help="For example 15s.")
]
RenewDeadlineOption = Annotated[
    str | None, typer.Option("--leader-elect-renew-deadline", metavar="DURATION", help="For example 10s.")
]
RetryPeriodOption = Annotated[
    str | None, typer.Option("--leader-elect-retry-period", metavar="DURATION", help="For example 2s.")
]
LeaseNamespaceOption = Annotated[
    str | None, typer.Option("--leader-elect-resource-namespace", metavar="NAME", help="Where the lease is.")
]
LeaseNameOption = Annotated[
    str | None, typer.Option("--leader-elect-resource-name", metavar="NAME", help="What the lease is called.")
]


def leader_flags(
    leader_elect: str | None,
    lease_duration: str | None,
    renew_deadline: str | None,
    retry_period: str | None,
    resource_namespace: str | None,
    resource_name: str | None,
) -> dict[str, str | None]:
    """The flags as `podium.config.flags` takes them."""
    return {
        "leader-elect": leader_elect,
        "leader-elect-lease-duration": lease_duration,
        "leader-elect-renew-deadline": renew_deadline,
        "leader-elect-retry-period": retry_period,
        "leader-elect-resource-namespace": resource_namespace,
        "leader-elect-resource-name": resource_name,
    }
