"""Reads the configuration a command runs with: a file, or what kube-scheduler runs without one."""

from podium.cli.console import echo
from podium.cli.files import read_text
from podium.config import Registry, SchedulerConfig, default_config, load_config


def read_config(file: str | None, registry: Registry) -> SchedulerConfig:
    """Loads the file and prints its warnings; raises ConfigError with everything that is wrong with it."""
    if file is None:
        return default_config(registry)
    config, warnings = load_config(*read_text(file), registry)
    for warning in warnings:
        echo(f"warning: {warning}", err=True)
    return config
