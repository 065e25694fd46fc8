"""Finds out how the kubelet of a node aligns resources, from what the node's NodeResourceTopology says.

    start                    scope container, policy none, at most 8 NUMA nodes
    topologyPolicies[0]      the deprecated form: policy and scope in one word
    attributes               topologyManagerPolicy, topologyManagerScope, topologyManagerMaxNUMANodes; they win

Attributes count in their order, so that the last valid value of a name is in force. A value that is not known is left
out, and reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

SINGLE_NUMA_NODE: Final = "single-numa-node"
POLICIES: Final = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
SCOPES: Final = ("container", "pod")
MOST_NUMA_NODES: Final = 1024

SCOPE: Final = "topologyManagerScope"
POLICY: Final = "topologyManagerPolicy"
MAX_NUMA_NODES: Final = "topologyManagerMaxNUMANodes"

LEGACY: Final = {
    f"{word}{scope.capitalize()}Level": (policy, scope)
    for word, policy in (
        ("SingleNUMANode", SINGLE_NUMA_NODE),
        ("BestEffort", "best-effort"),
        ("Restricted", "restricted"),
    )
    for scope in SCOPES
}
_WANTED: Final = {
    POLICY: f"one of {', '.join(POLICIES)}",
    SCOPE: f"one of {', '.join(SCOPES)}",
    MAX_NUMA_NODES: "a whole number above 1",
}
UNCHANGED: Final = ("None", "BestEffort", "Restricted")
"""Other words of the deprecated form, which change nothing."""


class ManagerSettings(NamedTuple):
    """The Topology Manager settings of a kubelet."""

    policy: str = "none"
    scope: str = "container"
    max_numa_nodes: int = 8

    @property
    def aligns(self) -> bool:
        """Whether a pod that fits no zone is turned away by the kubelet for certain."""
        return self.policy == SINGLE_NUMA_NODE

    @property
    def by_pod(self) -> bool:
        return self.scope == "pod"


_WHOLE: Final = re.compile(r"\+?[0-9]+")
_LARGEST: Final = (1 << 63) - 1


def read_settings(
    policies: Sequence[Any], attributes: Iterable[tuple[str, str]], problems: list[str]
) -> ManagerSettings:
    """The settings in force; what is wrong is added to `problems`."""
    policy, scope, most = ManagerSettings()
    word = policies[0] if policies else None
    if word is not None:
        if isinstance(word, str) and word in LEGACY:
            policy, scope = LEGACY[word]
        elif word not in UNCHANGED:
            problems.append(f'topologyPolicies[0]: "{word}" is not a known policy and is ignored')
    for name, value in attributes:
        if name == POLICY and value in POLICIES:
            policy = value
        elif name == SCOPE and value in SCOPES:
            scope = value
        elif name == MAX_NUMA_NODES and (number := _number(value)) > 1:
            most = min(number, MOST_NUMA_NODES)
        elif name in _WANTED:
            problems.append(f'attribute {name}: "{value}" is ignored; it must be {_WANTED[name]}')
    return ManagerSettings(policy, scope, most)


def _number(text: str) -> int:
    """A number as Go reads it; 0 where there is none, or none of 64 bits."""
    number = int(text) if len(text) <= 40 and _WHOLE.fullmatch(text) else 0
    return number if number <= _LARGEST else 0
