"""Shows the plugin to copy (Template). It lets a pod go anywhere and gives every node one point.

`podium plugins new NAME --agent` writes a package with a plugin of this shape, and its test. What else a plugin may
do is in docs/reference/plugin-contract.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec

from podium.cluster import NodeInfo
from podium.config.field import FieldError, FieldPath
from podium.framework import Cycle, Handle, Plugin, Scope
from podium.framework.environment import filled

NAME = "Template"
# A field that is None may be set by an environment variable, where an agent is set up by its container.
VARIABLES = {"points": "TEMPLATE_POINTS"}
DEFAULT_POINTS = 1
# Points go from 0 to 10, as kube-scheduler expects them of an extender; a score goes from 0 to 100.
SCORE_PER_POINT = 10

_log = logging.getLogger(__name__)


class TemplateArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What a configuration may say about the plugin."""

    points: int | None = None

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if self.points is not None and not 0 <= self.points <= 10:
            yield FieldError.invalid(path.child("points"), self.points, "must be from 0 to 10")


class Template(Plugin):
    name = NAME
    trusted = True
    Args = TemplateArgs
    # The answer about a node depends on the pod and the Node object alone, so it can be kept until the node changes.
    filter_scope = score_scope = Scope.NODE
    sees_claims = False

    def __init__(self, args: TemplateArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        self._score = SCORE_PER_POINT * (DEFAULT_POINTS if self.args.points is None else self.args.points)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
        """Whether the pod may go to the node: None if so, else the reason why not."""
        _log.debug("may pod %s go to node %s?", cycle.pod.key, node.name)
        return None

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        """How good the node is for the pod, from 0 to 100."""
        return self._score
