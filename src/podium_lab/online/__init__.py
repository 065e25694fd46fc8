"""Placing by rewards: learns, while it decides, which load and room of nodes pods fare well with. `OnlineScore`."""

from podium_lab.online.plugin import OnlineScore

__all__ = ["OnlineScore"]
