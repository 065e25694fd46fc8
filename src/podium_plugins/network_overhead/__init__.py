"""NetworkOverhead: pods of an AppGroup go to nodes from which the pods they depend on are cheap to reach.

`plugin` has the extension points; `network_topology` reads what it costs to get from zone to zone and from region to
region; `locations` has the zones and regions of nodes, and adds up what reaching the peers costs each node.
"""

from podium_plugins.network_overhead.plugin import NetworkOverhead

__all__ = ["NetworkOverhead"]
