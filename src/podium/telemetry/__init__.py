"""Sources of measured load: asked in the background; plugins read their answers in cycles."""

from podium.telemetry.telemetry import Followed, Telemetry

__all__ = ["Followed", "Telemetry"]
