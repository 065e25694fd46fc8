"""The parts of the reference that are made from the code each time the site is built.

A page asks for one by a comment on a line of its own: `<!-- table: commands -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from docs.tables import (
    api,
    commands,
    configuration,
    custom_resources,
    kube_scheduler_flags,
    metrics,
    plugin_arguments,
    scenarios,
)

TABLES: Final[dict[str, Callable[[], str]]] = {
    "commands": commands.page,
    "configuration": configuration.page,
    "custom-resources": custom_resources.page,
    "kube-scheduler-flags": kube_scheduler_flags.page,
    "metrics": metrics.page,
    "plugin-api": api.page,
    "plugin-arguments": plugin_arguments.page,
    "scenarios": scenarios.page,
}
ASKED_FOR: Final = re.compile(r"^<!-- table: (\S+) -->$", re.MULTILINE)


def with_tables(text: str) -> str:
    """A page's text with each table in its place; KeyError for one that there is not."""
    return ASKED_FOR.sub(lambda found: TABLES[found[1]](), text)
