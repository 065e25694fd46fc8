"""Places pods by the NUMA zones of nodes, as agents on the nodes report them in NodeResourceTopology objects."""

from podium_plugins.node_resource_topology_match.plugin import NodeResourceTopologyMatch

__all__ = ["NodeResourceTopologyMatch"]
