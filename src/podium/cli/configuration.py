"""Reads the configuration a command runs with: a file, or what kube-scheduler runs without one."""

from podium.cli.console import echo
from podium.cli.files import read_text
from podium.config import Registry, SchedulerConfig, default_config, load_config
from podium.config.feature_gates import Gates, read_gates


def read_config(file: str | None, registry: Registry, feature_gates: list[str] | None = None) -> SchedulerConfig:
    """Loads the file and prints its warnings; raises ConfigError with everything that is wrong with it."""
    gates = gates_of(feature_gates)
    if file is None:
        return default_config(registry, gates)
    config, warnings = load_config(*read_text(file), registry, gates)
    for warning in warnings:
        echo(f"warning: {warning}", err=True)
    return config


def gates_of(feature_gates: list[str] | None) -> Gates:
    """The gates that `--feature-gates` switches on; prints what Podium cannot switch."""
    gates, warnings = read_gates(feature_gates or ())
    for warning in warnings:
        echo(f"warning: {warning}", err=True)
    return gates
