"""Types how NetworkOverhead is configured: where its objects are, and which costs count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from podium.config.field import FieldError, FieldPath

DEFAULT_NAMESPACES: Final = ("default",)
USER_DEFINED: Final = "UserDefined"
DEFAULT_TOPOLOGY: Final = "nt-default"


class NetworkOverheadArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    namespaces: tuple[str, ...] = DEFAULT_NAMESPACES
    """Where AppGroups and the NetworkTopology are looked for, in this order."""
    weights_name: str = USER_DEFINED
    """Which of the weights of the NetworkTopology count: UserDefined, NetperfCosts (measured), or any other."""
    network_topology_name: str = DEFAULT_TOPOLOGY

    def __post_init__(self) -> None:
        for name, default in (
            ("namespaces", DEFAULT_NAMESPACES),
            ("weights_name", USER_DEFINED),
            ("network_topology_name", DEFAULT_TOPOLOGY),
        ):
            if not getattr(self, name):
                msgspec.structs.force_setattr(self, name, default)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for number, namespace in enumerate(self.namespaces):
            if not namespace:
                at = path.child("namespaces").index(number)
                yield FieldError.required(at, "name a namespace in which AppGroups and the NetworkTopology are")
