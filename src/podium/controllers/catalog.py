"""Lists the controllers, and finds those that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from podium.controllers.controller import Controller
from podium.framework.clock import Clock
from podium_plugins.controllers.app_group import AppGroupController
from podium_plugins.controllers.elastic_quota import ElasticQuotaController
from podium_plugins.controllers.network_topology import NetworkTopologyController
from podium_plugins.controllers.pod_group import PodGroupController

CONTROLLERS: Final[dict[str, Callable[[Clock], Controller]]] = {
    PodGroupController.name: PodGroupController,
    ElasticQuotaController.name: lambda _clock: ElasticQuotaController(),
    AppGroupController.name: AppGroupController,
    NetworkTopologyController.name: NetworkTopologyController,
}
"""How each is made, by name."""


class UnknownControllerError(ValueError):
    """A controller that there is not: one sentence says which there are."""


def choose(names: Sequence[str], clock: Clock) -> list[Controller]:
    """The controllers of these names; all where none is named. Raises UnknownControllerError."""
    for name in names:
        if name not in CONTROLLERS:
            raise UnknownControllerError(f'there is no controller "{name}"; there are {", ".join(CONTROLLERS)}')
    return [build(clock) for name, build in CONTROLLERS.items() if not names or name in names]
