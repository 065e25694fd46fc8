"""Knows the functions and types that an expression can name: reads the table of signatures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kubecel import types
from kubecel.signatures import SIGNATURES
from kubecel.types import CelType

_TOKEN: Final = re.compile(r"[\w.]+|[(),]")
_KUBERNETES_OBJECTS: Final = ("Quantity", "Semver", "URL", "NamedFormat")
_NAMED: Final = {
    **{each.name: each for each in (types.BOOL, types.BYTES, types.DOUBLE, types.INT, types.STRING, types.UINT)},
    "dyn": types.DYN,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    **{name: types.object_type(f"kubernetes.{name}") for name in _KUBERNETES_OBJECTS},
    "IP": types.opaque("net.IP"),
    "CIDR": types.opaque("net.CIDR"),
}
_VARIABLE: Final = re.compile(r"[A-Z]")


@dataclass(frozen=True)
class Overload:
    """One signature of a function; for a member the first argument is the target."""

    id: str
    function: str
    member: bool
    arguments: tuple[CelType, ...]
    result: CelType
    variables: tuple[CelType, ...]


def read_type(text: str) -> CelType:
    """The type that a table writes so.

    >>> str(read_type("map(string, optional(A))"))
    'map(string, optional_type(<A>))'
    """
    return _read_type(_TOKEN.findall(text))


def _read_type(tokens: list[str]) -> CelType:
    name = tokens.pop(0)
    parameters = []
    if tokens[:1] == ["("]:
        tokens.pop(0)
        while tokens[0] != ")":
            if tokens[0] == ",":
                tokens.pop(0)
            parameters.append(_read_type(tokens))
        tokens.pop(0)
    match name:
        case "list":
            return types.list_of(*parameters)
        case "map":
            return types.map_of(*parameters)
        case "optional":
            return types.optional_of(*parameters)
        case "type":
            return types.type_of(*parameters)
    if _VARIABLE.fullmatch(name):
        return types.parameter(name)
    return _NAMED.get(name) or types.object_type(name.replace("authz.", "kubernetes.authorization."))


def _read_overload(line: str, function: str, target: str, arguments: str, result: str) -> Overload:
    listed = _split(arguments)
    read = tuple(read_type(each) for each in ([target] if target else []) + listed)
    outcome = read_type(result)
    variables: dict[CelType, None] = {}
    for each in (*read, outcome):
        _collect_variables(each, variables)
    return Overload(line.split(" ", 1)[0], function, bool(target), read, outcome, tuple(variables))


def _collect_variables(found: CelType, variables: dict[CelType, None]) -> None:
    if found.kind is types.TypeKind.PARAMETER:
        variables[found] = None
    for each in found.parameters:
        _collect_variables(each, variables)


def _split(arguments: str) -> list[str]:
    """The arguments between commas that stand in no parentheses."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _parse(line: str) -> Overload:
    """Read one line of the table: identifier, signature, result."""
    signature = line.split(" ", 1)[1]
    depth, closing = 0, 0
    for at, character in enumerate(signature):
        depth += (character == "(") - (character == ")")
        if character == " " and depth == 0:
            closing = at
            break
    called, result = signature[:closing], signature[closing + 1 :]
    opening = _opening(called)
    head, arguments = called[:opening], called[opening + 1 : -1]
    target, _, name = head.rpartition(".")
    if target in _NAMESPACES:
        target, name = "", head
    return _read_overload(line, name, target, arguments, result)


_NAMESPACES: Final = frozenset({"cel", "format", "ip", "lists", "optional", "sets", "strings", "_?"})


def _opening(called: str) -> int:
    """Where the parenthesis of the arguments opens: the one that the last character closes."""
    depth = 0
    for at in range(len(called) - 1, -1, -1):
        depth += (called[at] == ")") - (called[at] == "(")
        if depth == 0:
            return at
    return 0


def _functions() -> dict[str, tuple[Overload, ...]]:
    found: dict[str, list[Overload]] = {}
    for line in SIGNATURES:
        overload = _parse(line)
        found.setdefault(overload.function, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}


FUNCTIONS: Final = _functions()
"""The overloads of each function, in the order in which they are tried."""

_A, _B = types.parameter("A"), types.parameter("B")
_OTHER_NAMES: Final = {
    "timestamp": types.TIMESTAMP,
    "duration": types.DURATION,
    "optional_type": types.opaque("optional_type"),
    "net.IP": _NAMED["IP"],
    "net.CIDR": _NAMED["CIDR"],
    "google.protobuf.Any": types.ANY,
    "google.protobuf.Value": types.DYN,
    "google.protobuf.Struct": types.map_of(types.STRING, types.DYN),
    "google.protobuf.ListValue": types.list_of(types.DYN),
    "google.protobuf.NullValue": types.NULL,
}
TYPES: Final = {name: types.type_of(each) for name, each in _OTHER_NAMES.items()} | {
    each.name: types.type_of(each)
    for each in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.DURATION,
        types.INT,
        types.list_of(_A),
        types.map_of(_A, _B),
        types.NULL,
        types.STRING,
        types.TIMESTAMP,
        types.TYPE,
        types.UINT,
    )
}
"""Names that stand for types."""

RETIRED: Final = frozenset(("int64_to_duration",))
"""Overloads that the newest release of Kubernetes no longer knows."""
