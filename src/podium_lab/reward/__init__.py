"""Placing by pod_outcomes: a node on which pods of a type have failed is avoided by the next ones. `RewardBias`."""

from podium_lab.reward.plugin import RewardBias

__all__ = ["RewardBias"]
