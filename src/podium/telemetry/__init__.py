"""Measured load of nodes: sources that are asked in the background, and whose answers plugins read in their cycles."""

from podium.telemetry.telemetry import Followed, Telemetry

__all__ = ["Followed", "Telemetry"]
