"""Finds out how the kubelet of a node aligns resources, from what the node's NodeResourceTopology says.

    start                    scope container, policy none, at most 8 NUMA nodes
    topologyPolicies[0]      the deprecated form: policy and scope in one word
    attributes               topologyManagerPolicy, topologyManagerScope, topologyManagerMaxNUMANodes; they win

A value that is not known is left out, and reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def read_settings(policies: Sequence[Any], attributes: Mapping[str, str], problems: list[str]) -> ManagerSettings:
    """The settings in force; what is wrong is added to `problems`."""
    policy, scope, most = ManagerSettings()
    word = policies[0] if policies else None
    if word is not None:
        if isinstance(word, str) and word in LEGACY:
            policy, scope = LEGACY[word]
        elif word not in UNCHANGED:
            problems.append(f'topologyPolicies[0]: "{word}" is not a known policy and is ignored')
    for name, supported in ((POLICY, POLICIES), (SCOPE, SCOPES)):
        value = attributes.get(name)
        if value is not None and value not in supported:
            problems.append(f'attribute {name}: "{value}" is ignored; it must be one of {", ".join(supported)}')
    policy = policy if attributes.get(POLICY) not in POLICIES else attributes[POLICY]
    scope = scope if attributes.get(SCOPE) not in SCOPES else attributes[SCOPE]
    text = attributes.get(MAX_NUMA_NODES)
    if text is not None:
        if text.isdecimal() and len(text) <= 18 and int(text) > 1:
            most = min(int(text), MOST_NUMA_NODES)
        else:
            problems.append(f'attribute {MAX_NUMA_NODES}: "{text}" is ignored; it must be a whole number above 1')
    return ManagerSettings(policy, scope, most)
