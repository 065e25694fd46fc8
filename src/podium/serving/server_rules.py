"""Follows the version of the API server, which says by which Kubernetes minor's rules a live scheduler decides.

The version is asked for at the start, and again whenever a watch of nodes was cut: an API server that is
upgraded cuts all watches. Only a newer minor is followed. While the servers of a control plane are upgraded one by one,
answers go back and forth, and the newer ones are those that stay.

Also asks the API server for its version, which says by which Kubernetes minor's rules a scheduler decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from podium.client import ApiError, Client, ClientError
from podium.kube import Node
from podium.kube.bounds import UNDECODABLE
from podium.kube.versions import NEWEST, FoundRules, UnknownVersionError, VersionRules, find_rules, version_in
from podium.serving.log import LOG

FIRST_ANSWER: Final = 5.0
"""Seconds that the start waits for the version. Without an answer the newest rules count until there is one."""
LOOK: Final = 1.0
"""Seconds between two looks at whether a watch was cut."""
OPTION: Final = "--kubernetes-version"


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


async def rules_of_server(client: Client) -> FoundRules:
    """The rules of the API server's minor; of the newest, with a warning, where it does not say its version.

    Raises UnknownVersionError where it is too old, and ClientError where it does not answer.
    """
    try:
        answer = msgspec.json.decode(await client.get("/version"))
    except ApiError as error:
        if not error.final:
            raise
        answer = None
    except UNDECODABLE:
        answer = None
    version = version_in(answer)
    if not version:
        return FoundRules(NEWEST, f"the API server does not say its version: the rules of {NEWEST} are used")
    try:
        return find_rules(version)
    except UnknownVersionError as error:
        raise UnknownVersionError(f"the API server: {error}, as {OPTION}") from None
