"""NodeResourcesFit: does the node have room for the pod, and how full would it be?

`insufficient_resources` is the filter: what of the pod's requests a node is short of. `strategy` and its three kinds
are the score: how full the node would be with the pod, and whether that is good (packing) or bad (spreading).
"""

from podium.plugins.node_resources_fit.args import NodeResourcesFitArgs, ScoringStrategy
from podium.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit", "NodeResourcesFitArgs", "ScoringStrategy"]
