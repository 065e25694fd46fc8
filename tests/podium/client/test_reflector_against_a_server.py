"""The reflector against a real API server: what it holds is what the server holds, whatever happens between them."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from podium.client import RESOURCES, ApiResource, Client, Reflector, load_access
from podium.client.access import Route
from podium.kube import Node, Pod
from tests.podium.client.followers import Follower, make_reflector, running, until
from tools.testbed import ControlPlane
from tools.testbed.objects import make_node, make_pod
from tools.testbed.proxy import TcpProxy

NODES = RESOURCES[Node]
PODS = RESOURCES[Pod]


@asynccontextmanager
async def client_of(
    plane: ControlPlane, proxy: TcpProxy | None = None, kept: float = 60, **who: Any
) -> AsyncIterator[Client]:
    """`kept`: seconds for which an idle connection may be used again."""
    server = plane.server if proxy is None else proxy.url
    kubeconfig = plane.write_kubeconfig(plane.folder / "reflector-kubeconfig", server=server, **who)
    access = load_access(str(kubeconfig))
    access.route = Route(connector=lambda limit: aiohttp.TCPConnector(limit=limit, keepalive_timeout=kept))
    async with Client(access) as client:
        yield client


async def versions(client: Client, resource: ApiResource[Any]) -> dict[str, tuple[str, str]]:
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
                assert reflector.problem is None
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


def test_thousands_of_changes_while_the_connection_is_cut_every_few_milliseconds(
    empty_control_plane: ControlPlane,
) -> None:
    plane = empty_control_plane
    rng = random.Random(7)

    async def change(client: Client, number: int) -> None:
        """The life of one pod: made, relabelled, gone, made anew under its name, and maybe gone again."""
        path = "/api/v1/namespaces/default/pods"
        for _ in range(2):
            await client.post(path, make_pod(f"pod-{number}"))
            for step in range(rng.randint(0, 4)):
                await client.patch(f"{path}/pod-{number}", {"metadata": {"labels": {"step": str(step)}}})
            if rng.random() < 0.5:
                return
            await client.delete(f"{path}/pod-{number}", {"gracePeriodSeconds": 0})

    async def main() -> None:
        with TcpProxy(plane.server) as proxy:
            async with client_of(plane, proxy) as disturbed, client_of(plane) as client:
                reflector, follower = make_reflector(disturbed, PODS)
                storm = True

                async def cut() -> None:
                    while storm:
                        await asyncio.sleep(rng.uniform(0.002, 0.1))
                        proxy.cut()

                async with running(reflector):
                    await reflector.synced.wait()
                    cutting = asyncio.create_task(cut())
                    for start in range(0, 600, 20):
                        await asyncio.gather(*(change(client, number) for number in range(start, start + 20)))
                    await until(lambda: proxy.accepted > 20)  # a quick machine is through before it was cut often
                    storm = False
                    await cutting
                    await catches_up(client, reflector, follower)
                    await until(lambda: reflector.problem is None)
                    assert len(follower.steps) > 1000
                assert len(follower.reports) < 20

    asyncio.run(main())


def test_a_connection_that_died_without_a_word_is_given_up_for_a_new_one(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane

    async def main() -> None:
        with TcpProxy(plane.server) as proxy:
            # Connections are kept for less long than a watch may be silent: 60 s and 150 s, if not in a test.
            async with client_of(plane, proxy, kept=0.5) as disturbed, client_of(plane) as client:
                reflector, follower = make_reflector(disturbed, NODES, idle=1.5)
                async with running(reflector):
                    await reflector.synced.wait()
                    plane.client.create(make_node("before"))
                    await catches_up(client, reflector, follower)
                    proxy.stall()
                    plane.client.create(make_node("meanwhile"))
                    await catches_up(client, reflector, follower)
                    assert follower.reports == []

    asyncio.run(main())


def test_an_api_server_that_restarts_is_found_again_and_nothing_is_missed(fresh_control_plane: ControlPlane) -> None:
    plane = fresh_control_plane

    async def main() -> None:
        plane.client.create_all([make_node(name) for name in ("same", "changed", "gone", "anew")])
        with TcpProxy(plane.server) as proxy:
            async with client_of(plane, proxy) as disturbed, client_of(plane) as client:
                reflector, follower = make_reflector(disturbed, NODES)
                async with running(reflector):
                    await reflector.synced.wait()
                    assert len(follower.steps) == 4
                    proxy.refuse()
                    proxy.cut()
                    plane.client.patch("Node", "changed", {"metadata": {"labels": {"a": "b"}}})
                    plane.client.delete("Node", "gone")
                    plane.client.delete("Node", "anew")
                    plane.client.create_all([make_node("anew"), make_node("new")], in_order=True)
                    plane.kill_apiserver()
                    await until(lambda: reflector.problem is not None)
                    plane.restart_apiserver()
                    proxy.accept()
                    # It has just started and knows no version from before: to the watch it says 410 in an event.
                    await catches_up(client, reflector, follower)
                    await until(lambda: reflector.problem is None)
                    told = sorted(follower.steps[4:])
                    assert told == ["delete anew", "delete gone", "set anew", "set changed", "set new"]
                    assert follower.reports[-1] == "nodes can be listed and watched again"

    asyncio.run(main())


def test_a_missing_rule_is_named_and_works_as_soon_as_it_is_granted(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    somebody = plane.authority.issue("somebody")

    of_roles = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reads-nodes"}}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "somebody"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-nodes"}

    def grant(*verbs: str) -> None:
        rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": verbs}]
        plane.client.patch("ClusterRole", "reads-nodes", {"rules": rules})

    async def main() -> None:
        async with client_of(plane, certificate=somebody) as client:
            reflector, _ = make_reflector(client, NODES)
            async with running(reflector):
                await until(lambda: reflector.problem is not None)
                assert reflector.problem == (
                    'nodes cannot be listed: nodes is forbidden: User "somebody" cannot list resource "nodes" in API '
                    'group "" at the cluster scope; the role of this user needs the rule '
                    'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]'
                )
                grant("list")
                await until(lambda: "cannot watch resource" in (reflector.problem or ""))
                assert reflector.problem.startswith("nodes cannot be watched: ")
                grant("list", "watch")
                await until(lambda: reflector.problem is None)

    plane.client.create({**of_roles, "kind": "ClusterRole", "rules": []})
    plane.client.create({**of_roles, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [user]})
    try:
        asyncio.run(main())
    finally:
        plane.client.delete("ClusterRole", "reads-nodes")
        plane.client.delete("ClusterRoleBinding", "reads-nodes")


def test_a_kind_that_the_server_does_not_have_yet(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    gangs: ApiResource[dict[str, Any]] = ApiResource("/apis/podium.test/v1/gangs")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gangs.podium.test"},
        "spec": {
            "group": "podium.test",
            "names": {"plural": "gangs", "kind": "Gang"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }

    async def main() -> None:
        async with client_of(plane) as client:
            reflector, follower = make_reflector(client, gangs)
            async with running(reflector):
                await until(lambda: reflector.problem is not None)
                assert reflector.problem == (
                    "gangs.podium.test cannot be listed: the API server has no gangs in podium.test/v1"
                )
                plane.client.create(definition)
                await reflector.synced.wait()
                gang = {"apiVersion": "podium.test/v1", "kind": "Gang", "metadata": {"name": "g"}, "size": 3}
                await client.post("/apis/podium.test/v1/namespaces/default/gangs", gang)
                await until(lambda: follower.steps == ["set default/g"])
                assert reflector.store["default/g"]["size"] == 3

    try:
        asyncio.run(main())
    finally:
        plane.client.delete("CustomResourceDefinition", "gangs.podium.test")
