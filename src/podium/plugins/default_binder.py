"""Binds the pod through whatever the driver writes to the API server with (DefaultBinder)."""

from __future__ import annotations

from podium.framework import Cycle, Plugin
from podium.framework.handle import Effect

NAME = "DefaultBinder"


class DefaultBinder(Plugin):
    name = NAME
    trusted = True

    def bind(self, cycle: Cycle, node_name: str) -> Effect:
        return self.handle.writer.bind(cycle.pod, node_name)
