"""Preemption that may evict pods on several nodes so that one pod fits on one of them."""

from podium_plugins.cross_node_preemption.plugin import CrossNodePreemption

__all__ = ["CrossNodePreemption"]
