"""Lets a model score the nodes, in this process or behind a server (ModelScore)."""

from podium_lab.model_score.plugin import ModelScore

__all__ = ["ModelScore"]
