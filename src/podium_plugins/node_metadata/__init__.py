"""NodeMetadata: scores nodes by one of their labels or annotations, a number or a time.

`plugin` says what is read and which end is better, and scores; `go_layout` reads times written as a Go layout says.
"""

from podium_plugins.node_metadata.plugin import NodeMetadata

__all__ = ["NodeMetadata"]
