"""Keeps promises to workloads (QosAware): orders the queue and evicts by how far controllers are from their SLO."""

from podium_plugins.qos_aware.plugin import QosAware

__all__ = ["QosAware"]
