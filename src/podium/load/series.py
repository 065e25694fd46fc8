"""Defines a measured series, one number per node, and how its samples find their node.

A plugin builds a `Series` from its arguments and follows it through its handle; the load source of the process knows
how to fetch it. Equal series are fetched once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from podium.config.field import FieldError, FieldPath
from podium.load.settings import SourceSettings

Combine = Literal["max", "min", "sum", "mean"]


class NodeMatch(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which node a series belongs to.

    The value of `label` is read; with a `regex` it must match as a whole, and what `replacement` makes of it is taken
    (`$1`, `${1}` and `${name}` stand for groups). The result is looked up as a node's name, as an address of a node, or
    as either, with or without a port; or, with the label `namespace`, as the name of a pod, whose node counts.
    """

    label: str = ""
    """Empty: the first of `node`, `kubernetes_node`, `nodename`, `instance` that leads to a node; `pod` for pods."""
    by: Literal["either", "name", "address", "pod"] = "either"
    regex: str = ""
    replacement: str = "$1"

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.regex:
            return
        if not self.label:
            yield FieldError.required(path.child("label"), "a regex needs to know the label it is for")
        try:
            pattern = re.compile(self.regex)
        except re.error as error:
            yield FieldError.invalid(path.child("regex"), self.regex, f"is not a regular expression: {error}")
            return
        try:
            python_replacement(pattern, self.replacement)
        except ValueError as error:
            yield FieldError.invalid(path.child("replacement"), self.replacement, str(error))


class SeriesPart(msgspec.Struct, frozen=True, kw_only=True):
    """One of the expressions that a query adds up. If one has no samples, the sum has none."""

    name: str
    query: str
    otherwise: str
    """What to write where this part is not measured."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One number per node. Equal series are fetched once, however many plugins follow them."""

    source: SourceSettings
    query: str
    """For prometheus the PromQL expression that yields one sample per node; for metrics-server and load-watcher the
    type and operator, `CPU/AVG`, `Memory/STD`, `CPU/Latest`, to which load-watcher's name of the metric may be added
    (`Bandwidth/AVG/instance:node_network_receive_bytes:rate:sum`); for annotations the key."""
    match: NodeMatch = NodeMatch()
    """How prometheus' samples find their node; the other sources name nodes themselves."""
    combine: Combine = "max"
    """What becomes of several samples that belong to one node."""

    parts: tuple[SeriesPart, ...] = ()
    """What prometheus is asked for when the query has no samples, to say which part has none."""

    def __str__(self) -> str:
        return f"{self.query} of {self.source}"


def python_replacement(pattern: re.Pattern[str], replacement: str) -> str:
    """A replacement with `$1`, `${1}`, `${name}` and `$$` in the form `Match.expand` takes; ValueError when it names a
    group that the pattern does not have."""
    parts: list[str] = []
    end = 0
    for found in _GROUP.finditer(replacement):
        parts.append(replacement[end : found.start()].replace("\\", r"\\"))
        end = found.end()
        name = found[1] or found[2]
        if name is None:
            parts.append("$")
        elif (int(name) <= pattern.groups) if name.isdecimal() else name in pattern.groupindex:
            parts.append(rf"\g<{name}>")
        else:
            raise ValueError(f"names the group ${{{name}}}, which the regex does not have")
    return "".join((*parts, replacement[end:].replace("\\", r"\\")))


_GROUP = re.compile(r"\$(?:\{(\w+)\}|([0-9]+|[A-Za-z_]\w*)|\$)")
