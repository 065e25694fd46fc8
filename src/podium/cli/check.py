"""Checks a KubeSchedulerConfiguration and shows what it does (`podium check`).

Every mistake is one line that starts with file and line, so that editors and CI turn it into a link. Without mistakes
the command shows what the file amounts to: the plugins of each extension point in running order. With --upgrade-to it
shows what another Kubernetes minor changes for it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.console import console, echo, echo_data, echo_json, print_table, table
from podium.cli.errors import ANSWER_IS_NO, BAD_INPUT, InputError
from podium.cli.options import FeatureGatesOption, KubernetesVersionOption, Output, PluginOption
from podium.config.problems import ConfigError
from podium.kube.versions import UnknownVersionError, VersionRules, find_rules
from podium.kube.versions.upgrade import changes_between

if TYPE_CHECKING:
    from podium.config import ConfigProblem, LoadedConfig, Profile, SchedulerConfig
    from podium.kube.versions import Gates, VersionRules


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The configuration, YAML or JSON; - is standard input.")],
    output: Annotated[
        Output,
        typer.Option(
            "--output",
            "-o",
            help="table: the plugins in running order. yaml: the configuration with every default spelt out. "
            "json: both, with problems and warnings as data.",
        ),
    ] = Output.TABLE,
    plugin: PluginOption = None,
    feature_gates: FeatureGatesOption = None,
    kubernetes_version: KubernetesVersionOption = None,
    upgrade_to: Annotated[
        str | None,
        typer.Option(
            "--upgrade-to",
            metavar="1.36|1.37",
            help="Say what an upgrade to this minor changes: gates, defaults, fields and decisions.",
        ),
    ] = None,
) -> None:
    """Check a KubeSchedulerConfiguration and show what it amounts to.

    Exits 0 when it can be used, 2 when it cannot. Warnings do not change that. With --upgrade-to it exits 1 when the
    file or a feature gate is refused after the upgrade.

    Example: podium check scheduler.yaml -o yaml

    Example: podium check scheduler.yaml --kubernetes-version 1.36 --upgrade-to 1.37
    """
    from podium.cli.check import show_upgrade, upgrade_target
    from podium.cli.configuration import given_rules, registry_with, rules_with
    from podium.cli.files import read_text
    from podium.config import ConfigError, load_config
    from podium.kube.printable import printable
    from podium.kube.versions import NEWEST

    text, source = read_text(file)
    registry = registry_with(plugin)
    given = given_rules(kubernetes_version) or NEWEST
    target = None if upgrade_to is None else upgrade_target(upgrade_to, given)
    rules = rules_with(feature_gates, given)
    try:
        loaded = load_config(text, source, registry, rules)
    except ConfigError as error:
        problems = sorted(error.problems, key=lambda problem: (problem.line, problem.column))
        if output is Output.JSON:
            _print_json(rules, valid=False, problems=problems, warnings=[])
        else:
            for problem in problems:
                echo(printable(str(problem)), err=output is Output.YAML)
        raise typer.Exit(BAD_INPUT) from None
    if target is None:
        _show(loaded, source, output)
        return

    def configure_after() -> "SchedulerConfig":
        return load_config(text, source, registry, rules_with(feature_gates, target, quiet=True)).config

    show_upgrade(loaded.config, target, configure_after, output)


def _show(loaded: "LoadedConfig", source: str, output: Output) -> None:
    from podium.config import to_dict, to_yaml

    if output is Output.JSON:
        config = loaded.config
        _print_json(config.rules, valid=True, problems=[], warnings=loaded.warnings, config=to_dict(config))
        return
    for warning in loaded.warnings:
        echo(f"warning: {warning}", err=True)
    if output is Output.YAML:
        echo(to_yaml(loaded.config), nl=False)
        return
    echo(f"{source}: fine")
    for profile in loaded.config.profiles:
        _print_profile(profile, loaded.config.gates)


def _print_profile(profile: "Profile", gates: "Gates") -> None:
    from podium.cli.console import console, print_table, table

    rows = table(f"Profile {profile.scheduler_name}")
    rows.add_column("extension point", no_wrap=True)
    rows.add_column("plugins in running order (weight)")
    for point, plugins in profile.running_plugins(gates).items():
        shown = [name if weight is None else f"{name} ({weight})" for name, weight in plugins.items()]
        rows.add_row(point, ", ".join(shown))
    print_table(console(), rows)


def _print_json(
    rules: "VersionRules",
    *,
    valid: bool,
    problems: "Sequence[ConfigProblem]",
    warnings: "Sequence[ConfigProblem]",
    **more: Any,
) -> None:

    state = {"kubernetesVersion": str(rules)}
    report = {"state": state, "valid": valid, "problems": problems, "warnings": warnings, **more}
    echo_json(report)


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
