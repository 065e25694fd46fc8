"""Declares what a plugin's answer about a node depends on, so that it is asked again only where something changed.

A plugin that declares nothing is asked each time, and is right. One that declares more is faster:

    class QuietNodes(Plugin):
        depends_on = DependsOn(node=NodePart.OBJECT, claims=False, kinds=())

        def score_node(self, cycle, node):
            return 100 if node.labels.get("quiet") == "true" else 0

The declaration is a promise about pods of one signature (equal in namespace, labels, annotations, owners and spec):
they get equal answers about a node until a declared part changes.

    node         answer_key(pod)        an answer about a node is kept
    ANYTHING     not defined, or None   never
    ANYTHING     a value                while the value is equal
    below that   not defined            while that part of the node, and the objects of `kinds`, are unchanged
    below that   None                   never
    below that   a value                while that part of the node is unchanged and the value is equal

A plugin that looks at more than `node` and `kinds` say (measured load, what it has learnt, the clock, other nodes)
defines `answer_key(pod)`: it returns something that is different whenever that made a difference. The empty tuple
promises that nothing else ever matters for pods like this one. A plugin that defines it answers for `kinds`, too.
"""

from __future__ import annotations

import enum

import msgspec


class NodePart(enum.IntEnum):
    """How much of a node an answer about it depends on; each contains the ones before it."""

    OBJECT = 0
    """The Node object: labels, taints, allocatable, annotations."""
    TOTALS = 1
    """Also the sums over its pods: requested resources, pod count."""
    PODS = 2
    """Also which pods are on it."""
    ANYTHING = 3
    """Also other nodes, other objects, the clock."""


class DependsOn(msgspec.Struct, frozen=True):
    """What a plugin's answers depend on; the defaults promise nothing.

    >>> DependsOn(node=NodePart.TOTALS).node < NodePart.PODS
    True
    """

    node: NodePart = NodePart.ANYTHING
    claims: bool = True
    """Whether pods that differ only in the names of their persistent volume claims may get different answers."""
    kinds: tuple[type, ...] | None = None
    """The kinds of `podium.kube` that it reads beside nodes and pods: Podium watches them and asks for the right to.
    None: it may read any kind that is watched anyway."""
