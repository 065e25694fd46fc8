"""Sorts the plugins into groups, and says in one line what each is for."""

import re
import sys
from typing import Final

from podium import packages
from podium.framework import Plugin

GROUPS: Final = (
    "The queue and its order",
    "What a node must be",
    "Room on nodes",
    "Pods near or away from others",
    "Gangs and quotas",
    "Preemption",
    "Devices, NUMA and volumes",
    "Measured load",
    "Learning",
    "Binding",
)
"""In the order in which they are shown."""

OTHERS: Final = "Others"


def group_of(name: str) -> str:
    """
    >>> group_of("Coscheduling")
    'Gangs and quotas'
    """
    listed = packages.plugins().get(name)
    return OTHERS if listed is None else listed.group


def purpose_of(name: str, plugin: type[Plugin]) -> str:
    """What a plugin is for; of one that is not listed, the first sentence of its documentation."""
    listed = packages.plugins().get(name)
    if listed is not None:
        return listed.purpose
    written = plugin.__doc__ or getattr(sys.modules.get(plugin.__module__), "__doc__", None) or ""
    sentence = re.split(r"(?<=[.!?])\s|\n\s*\n", written.strip(), maxsplit=1)[0]
    return " ".join(sentence.split()).rstrip(".")
