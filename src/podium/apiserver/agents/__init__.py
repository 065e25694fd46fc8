"""The nodes of the embedded cluster and what runs on them."""

from podium.apiserver.agents.agents import Agents
from podium.apiserver.agents.shapes import Shape

__all__ = ["Agents", "Shape"]
