"""PodTopologySpread: pods of a kind spread evenly over zones, nodes or any other domain."""

from podium.plugins.pod_topology_spread.args import PodTopologySpreadArgs
from podium.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread", "PodTopologySpreadArgs"]
