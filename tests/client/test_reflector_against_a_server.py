"""The reflector against a real API server: what it holds is what the server holds, whatever happens between them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from podium.client import RESOURCES, Client, Reflector, Resource, load_access
from podium.kube import Node, Pod
from tests.client.followers import Follower, make_reflector, running, until
from tests.testbed import ControlPlane
from tests.testbed.objects import make_node, make_pod
from tests.testbed.proxy import TcpProxy

NODES = RESOURCES[Node]
PODS = RESOURCES[Pod]


@asynccontextmanager
async def client_of(plane: ControlPlane, proxy: TcpProxy | None = None, **who: Any) -> AsyncIterator[Client]:
    server = plane.server if proxy is None else proxy.url
    kubeconfig = plane.write_kubeconfig(plane.folder / "reflector-kubeconfig", server=server, **who)
    async with Client(load_access(str(kubeconfig))) as client:
        yield client


async def versions(client: Client, resource: Resource[Any]) -> dict[str, tuple[str, str]]:
    """UID and version of every object by key, as the server has them now."""
    listed = msgspec.json.decode(await client.get(resource.path, resource.params))
    found = (item["metadata"] for item in listed["items"])
    return {
        "/".join(filter(None, (each.get("namespace"), each["name"]))): (each["uid"], each["resourceVersion"])
        for each in found
    }


def held(objects: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {key: (obj.metadata.uid, obj.metadata.resource_version) for key, obj in objects.items()}


async def catches_up(client: Client, reflector: Reflector[Any], follower: Follower) -> None:
    truth = await versions(client, reflector.resource)
    await until(lambda: held(reflector.store) == truth, f"for {len(truth)} {reflector.resource.name}")
    assert held(follower.copy) == truth


def test_what_is_there_comes_first_and_every_change_after(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane

    async def main() -> None:
        plane.client.create_all([make_pod("a"), make_pod("b")], in_order=True)
        async with client_of(plane) as client:
            reflector, follower = make_reflector(client, PODS)
            async with running(reflector):
                await reflector.synced.wait()
                assert follower.steps == ["set default/a", "set default/b"]
                plane.client.patch("Pod", "a", {"metadata": {"labels": {"tier": "web"}}})
                plane.client.delete("Pod", "b")
                plane.client.create(make_pod("b"))
                await catches_up(client, reflector, follower)
                marked_and_gone = ["set default/b", "delete default/b"]  # deleting writes the deletion time first
                assert follower.steps[2:] == ["set default/a", *marked_and_gone, "set default/b"]
                assert reflector.store["default/a"].labels == {"tier": "web"}
                assert reflector.trouble is None
                assert follower.reports == []

    asyncio.run(main())


def test_a_pod_that_has_ended_is_told_as_gone(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane

    async def main() -> None:
        plane.client.create(make_pod("job"))
        async with client_of(plane) as client:
            reflector, follower = make_reflector(client, PODS)
            async with running(reflector):
                await reflector.synced.wait()
                plane.client.patch("Pod", "job", {"status": {"phase": "Succeeded"}}, subresource="status")
                await until(lambda: follower.steps[-1] == "delete default/job")

    asyncio.run(main())


def test_more_objects_than_fit_on_a_page(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane

    async def main() -> None:
        plane.client.create_all([make_node(f"node-{number}") for number in range(1101)])
        async with client_of(plane) as client:
            reflector, follower = make_reflector(client, NODES, keep_raw=True)
            async with running(reflector):
                await reflector.synced.wait()
                assert len(reflector.store) == 1101
                await catches_up(client, reflector, follower)
                assert msgspec.json.decode(reflector.raw["node-7"])["metadata"]["name"] == "node-7"

    asyncio.run(main())
