"""Asks the API server for its version, which says by which Kubernetes minor's rules a scheduler decides."""

from __future__ import annotations

from typing import Final

import msgspec

from podium.client.client import Client
from podium.client.errors import ApiError
from podium.kube.bounds import UNDECODABLE
from podium.kube.versions import NEWEST, FoundRules, UnknownVersionError, find_rules, version_in

OPTION: Final = "--kubernetes-version"


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
