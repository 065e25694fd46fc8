"""Finds where the API server serves the kinds that only plugins read: "plural.group", or a kind of the core group."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from podium.client.client import Client
from podium.client.resource import ApiResource
from podium.kube.custom_object import CORE_KINDS

_CORE: Final = frozenset(CORE_KINDS.values())


class NoSuchKindError(Exception):
    """The API server serves the group, and no such kind in it."""


async def find_resource(client: Client, name: str) -> ApiResource[Any]:
    """Where it is served, at the version that the server prefers; every server has the kinds of the core group.

    Raises NoSuchKindError, the client's own errors, and those of answers that make no sense: UNDECODABLE, LookupError
    and TypeError.
    """
    if name in _CORE:
        return ApiResource(f"/api/v1/{name}", None)
    plural, _, group = name.partition(".")
    version = msgspec.json.decode(await client.get(f"/apis/{group}"))["preferredVersion"]["groupVersion"]
    listed = msgspec.json.decode(await client.get(f"/apis/{version}"))
    if not any(each["name"] == plural for each in listed["resources"]):
        raise NoSuchKindError(f"the API server has no {plural} in {version}")
    return ApiResource(f"/apis/{version}/{plural}", None)
