"""Knows the Kubernetes minors whose decisions Podium makes, and finds the rules for a version.

Each minor is one file here, `v1_37.py` and so on. A minor is dropped by deleting its file.
"""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from typing import Any, Final, NamedTuple

from podium.errors import UserError
from podium.kube.versions.rules import (
    NO_GATES,
    Gate,
    Gates,
    GateTable,
    ImageVolumes,
    VersionRules,
)

__all__ = [
    "KNOWN",
    "NEWEST",
    "NO_GATES",
    "FoundRules",
    "Gate",
    "GateTable",
    "Gates",
    "ImageVolumes",
    "UnknownVersionError",
    "VersionRules",
    "find_rules",
    "version_in",
]


def _known() -> dict[str, VersionRules]:
    """By version, "1.35" first."""
    names = sorted(each.name for each in pkgutil.iter_modules(__path__) if each.name.startswith("v1_"))
    found: list[VersionRules] = [import_module(f"{__name__}.{name}").RULES for name in names]
    return {str(rules): rules for rules in sorted(found, key=lambda rules: rules.minor)}


KNOWN: Final = _known()
NEWEST: Final = list(KNOWN.values())[-1]


class UnknownVersionError(UserError, ValueError):
    """A version that is none, or whose rules Podium does not have."""


class FoundRules(NamedTuple):
    """The rules for a version, and what the reader should know where they are not exactly its own."""

    rules: VersionRules
    warning: str = ""


_VERSION: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,9})?(\S*)", re.ASCII)
_EMBEDDED: Final = "+podium"
"""What `podium up` calls itself; it has the rules of its minor exactly."""
_SUFFIX: Final = re.compile(r"[-+][0-9A-Za-z][0-9A-Za-z.+-]*|\+", re.ASCII)  # a server's minor may be "36+"


def version_in(answer: Any) -> str:
    """The version in what `/version` answers, and `kubectl version` prints; empty where there is none.

    >>> version_in({"major": "1", "minor": "36+"}), version_in({"gitVersion": "v1.37.1"}), version_in([])
    ('1.36+', 'v1.37.1', '')
    """
    if isinstance(answer, str):
        return answer
    if not isinstance(answer, dict):
        return ""
    git, major, minor = (answer.get(key) for key in ("gitVersion", "major", "minor"))
    if isinstance(git, str) and git:
        return git
    return f"{major}.{minor}" if isinstance(major, str) and isinstance(minor, str) and major and minor else ""


def find_rules(version: str) -> FoundRules:
    """The rules for a version such as `1.37`, `v1.36.4` or what an API server calls itself.

    A newer minor gets the newest rules, and what a provider built gets those of its minor, both with a warning. An
    older minor, and what is no version, raises UnknownVersionError.

    >>> str(find_rules("v1.36.4").rules), find_rules("1.99").warning
    ('1.36', 'Kubernetes 1.99 is newer than the rules that Podium has: those of 1.37 are used')
    >>> find_rules("v1.37.1-eks-1").warning
    'v1.37.1-eks-1 is not a release of Kubernetes itself: the rules of 1.37 are used'
    """
    read = _VERSION.fullmatch(version.strip())
    if read is None or (read[3] and not _SUFFIX.fullmatch(read[3])):
        raise UnknownVersionError(f'"{version}" is no Kubernetes version: write one of {", ".join(KNOWN)}')
    major, minor, suffix = int(read[1]), int(read[2]), read[3]
    name = f"{major}.{minor}"
    if (major, minor) > (1, NEWEST.minor):
        warning = f"Kubernetes {name} is newer than the rules that Podium has: those of {NEWEST} are used"
        return FoundRules(NEWEST, warning)
    if name not in KNOWN:
        raise UnknownVersionError(f'Podium has no rules for Kubernetes "{version}": write one of {", ".join(KNOWN)}')
    if suffix not in ("", _EMBEDDED):
        rules = KNOWN[name]
        return FoundRules(rules, f"{version} is not a release of Kubernetes itself: the rules of {rules} are used")
    return FoundRules(KNOWN[name])
