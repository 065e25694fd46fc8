"""Placing pods by what the whole cluster would look like afterwards: `PigeonHoling`."""

from podium.plugins.pigeon.plugin import PigeonHoling

__all__ = ["PigeonHoling"]
