"""Sources of measured load: asked in the background; plugins read their answers in cycles."""

from podium.load.sources.telemetry import Followed, Telemetry

__all__ = ["Followed", "Telemetry"]
