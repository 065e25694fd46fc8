"""Elastic quotas per namespace: a guaranteed amount, borrowing of what others leave, and reclaiming it by eviction."""

from podium_plugins.capacity_scheduling.plugin import CapacityScheduling

__all__ = ["CapacityScheduling"]
