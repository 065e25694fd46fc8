"""What plugins read as it is written is in the snapshot of a live cluster, too: ConfigMaps, and anybody's own kinds."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from podium import Plugin
from podium.client import ApiError
from podium.engine.explain import build_cluster
from podium.framework.nominator import Nominator
from podium.kube import Pod
from podium.run.snapshot import fetch_custom_objects
from tests.podium.client.asking import new_client
from tests.podium.client.servers import serving

GROUP = {
    "/apis/example.test": {"preferredVersion": {"groupVersion": "example.test/v2"}},
    "/apis/example.test/v2": {"resources": [{"name": "widgets"}]},
}
ITEMS: dict[str, dict[str, Any]] = {
    "/api/v1/configmaps": {"metadata": {"namespace": "kube-system", "name": "weights"}, "data": {"a": "3"}},
    "/apis/example.test/v2/widgets": {"metadata": {"name": "bolt"}, "size": 7},
}


class Reads(Plugin):
    resources = ("configmaps/v1", "widgets.example.test/v1", "gears.example.test/v1", "cogs.nowhere.test/v1")


def fetched(status: int = 404) -> tuple[dict[str, Any], list[str]]:
    """The stores that a plugin would see, and what was said."""
    said: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path in GROUP:
            return web.json_response(GROUP[request.path])
        if request.path in ITEMS:
            return web.json_response({"metadata": {"resourceVersion": "9"}, "items": [ITEMS[request.path]]})
        return web.json_response({"kind": "Status", "message": "no"}, status=status)

    async def main() -> dict[str, Any]:
        async with serving(answer) as url, new_client(url) as client:
            found = await fetch_custom_objects(client, [Reads], said.append)
        return dict(build_cluster(found, Pod(), set(), Nominator()).objects.custom)

    return asyncio.run(main()), said


def test_config_maps_and_custom_resources_of_any_kind_are_fetched() -> None:
    stores, said = fetched()
    assert stores["configmaps"].get("kube-system/weights") == ITEMS["/api/v1/configmaps"]
    assert stores["widgets.example.test"].get("bolt")["size"] == 7
    assert said == [
        "cogs.nowhere.test are left out: the API server has none",
        "gears.example.test are left out: the API server has no gears in example.test/v2",
    ]


def test_a_server_that_fails_is_no_server_that_has_none() -> None:
    with pytest.raises(ApiError):
        fetched(status=500)
