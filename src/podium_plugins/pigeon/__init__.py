"""Placing pods by what the whole cluster would look like afterwards: `PigeonHoling`."""

from podium_plugins.pigeon.plugin import PigeonHoling

__all__ = ["PigeonHoling"]
