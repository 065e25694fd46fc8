"""Requests against a real API server."""

import asyncio

import msgspec
import pytest

from podium.client import ApiError, Client, load_access
from tests.testbed import ControlPlane


def test_objects_are_created_read_changed_and_deleted(empty_control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with Client(load_access(str(empty_control_plane.kubeconfig_path))) as client:
            await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
            await client.patch("/api/v1/nodes/n", {"metadata": {"labels": {"a": "b"}}})
            node = msgspec.json.decode(await client.get("/api/v1/nodes/n"))
            assert node["metadata"]["labels"] == {"a": "b"}
            node["metadata"]["labels"] = {"a": "c"}
            await client.put("/api/v1/nodes/n", node)
            found = msgspec.json.decode(await client.get("/api/v1/nodes", {"labelSelector": "a in (c)"}))
            assert [item["metadata"]["name"] for item in found["items"]] == ["n"]
            await client.delete("/api/v1/nodes/n")
            with pytest.raises(ApiError, match='nodes "n" not found') as refused:
                await client.get("/api/v1/nodes/n")
            assert refused.value.not_found

    asyncio.run(main())


def test_a_watch_yields_bytes_as_they_come(empty_control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with (
            Client(load_access(str(empty_control_plane.kubeconfig_path))) as client,
            client.stream("/api/v1/nodes", {"watch": "true"}) as chunks,
        ):
            await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
            first = msgspec.json.decode(await anext(aiter(chunks)))
            assert first["type"] == "ADDED"

    asyncio.run(main())


def test_a_user_with_a_certificate_is_known_by_its_name(empty_control_plane: ControlPlane) -> None:
    pair = empty_control_plane.authority.issue("nobody-special")
    kubeconfig = empty_control_plane.write_kubeconfig(empty_control_plane.folder / "nobody", certificate=pair)

    async def main() -> None:
        async with Client(load_access(str(kubeconfig))) as client:
            with pytest.raises(ApiError, match="nobody-special") as refused:
                await client.get("/api/v1/nodes")
            assert refused.value.forbidden

    asyncio.run(main())
