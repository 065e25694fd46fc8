"""Keeps pods near the users they answer: the plugin LatencyAware, and the limits that pods set in annotations."""

from podium_plugins.latency_aware.plugin import LatencyAware

__all__ = ["LatencyAware"]
