"""Prints what an upgrade to another Kubernetes minor changes for a configuration (`podium check --upgrade-to`)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from podium.cli.console import console, echo, echo_data, print_table, table
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import Output
from podium.config.problems import ConfigError
from podium.kube.versions import UnknownVersionError, VersionRules, find_rules
from podium.kube.versions.upgrade import changes_between

if TYPE_CHECKING:
    from podium.config import SchedulerConfig


def upgrade_target(text: str, now: VersionRules) -> VersionRules:
    """The rules of the minor that `--upgrade-to` names."""
    try:
        target, warning = find_rules(text)
    except UnknownVersionError as error:
        raise InputError(f"--upgrade-to: {error}") from None
    if warning:
        echo(f"warning: {warning}", err=True)
    if target.minor <= now.minor:
        raise InputError(f"--upgrade-to {target}: write a newer minor than {now}, or another --kubernetes-version")
    return target


def show_upgrade(
    config: "SchedulerConfig", target: VersionRules, configure_after: Callable[[], "SchedulerConfig"], output: Output
) -> None:
    """Print the changes; exits with 1 where the configuration is refused after the upgrade."""
    now = config.rules
    plugins = {name for profile in config.profiles for names in profile.plugins.values() for name in names}
    refusals: list[str] = []
    try:
        configure_after()
    except ConfigError as error:
        refusals = [problem.message for problem in error.problems]
    changes = list(changes_between(now, target, plugins))
    if output is not Output.TABLE:
        data = {
            "state": {"kubernetesVersion": str(now)},
            "upgradeTo": str(target),
            "valid": not refusals,
            "problems": refusals,
            "changes": [each._asdict() for each in changes],
        }
        echo_data(data, output)
    else:
        rows = table(f"From Kubernetes {now} to {target}")
        for heading in ("what", "before", "after", "what it does to decisions"):
            rows.add_column(heading, overflow="fold")
        for each in changes:
            rows.add_row(f"{each.kind} {each.name}", each.before, each.after, each.effect)
        print_table(console(), rows)
        for refusal in refusals:
            echo(f"refused by {target}: {refusal}")
    if refusals:
        raise typer.Exit(ANSWER_IS_NO)
