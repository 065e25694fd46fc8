"""Follows the version of the API server, which says by which Kubernetes minor's rules a live scheduler decides.

The version is asked for at the start, and again whenever a watch of nodes was cut: an API server that is
upgraded cuts all watches. Only a newer minor is followed. While the servers of a control plane are upgraded one by one,
answers go back and forth, and the newer ones are those that stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from podium.client import Client, ClientError
from podium.client.server_version import rules_of_server
from podium.kube import Node
from podium.kube.versions import NEWEST, UnknownVersionError, VersionRules
from podium.serving.log import LOG

FIRST_ANSWER: Final = 5.0
"""Seconds that the start waits for the version. Without an answer the newest rules count until there is one."""
LOOK: Final = 1.0
"""Seconds between two looks at whether a watch was cut."""


class ServerRules:
    """The rules of the API server's minor, as last heard."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client
        self.rules = NEWEST
        self._answered = False

    async def first(self) -> VersionRules:
        """Raises UnknownVersionError where the API server is too old."""
        try:
            await asyncio.wait_for(self._ask(), FIRST_ANSWER)
        except (ClientError, TimeoutError) as error:
            LOG.warning("the API server's version is not known yet, the rules of %s count: %s", self.rules, error)
        return self.rules

    async def changed(self, reflectors: Mapping[type, Any]) -> VersionRules:
        """Wait until other rules count than did."""
        before = self.rules
        watches = 0 if not self._answered else self._begun(reflectors)
        while True:
            await asyncio.sleep(LOOK)
            begun = self._begun(reflectors)
            if begun == watches and self._answered:
                continue
            try:
                await self._ask()
                watches = begun
            except (ClientError, UnknownVersionError):
                continue
            if self.rules is not before:
                return self.rules

    async def _ask(self) -> None:
        async with self._client() as client:
            found = await rules_of_server(client)
        if found.warning and not self._answered:
            LOG.warning("%s", found.warning)
        if found.rules.minor > self.rules.minor or not self._answered:
            self.rules = found.rules
        self._answered = True

    @staticmethod
    def _begun(reflectors: Mapping[type, Any]) -> int:
        nodes = reflectors[Node]
        return int(nodes.watches + nodes.lists)
