"""Watches custom resources and pods, and has a controller bring the status of each resource up to date.

Keys are ("namespace", "name") of the custom resource. A key is reconciled once for however many changes came together,
and again later where that failed, so a controller only compares what is with what should be.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Hashable
from typing import Protocol, TypeVar

from podium.client import MERGE_PATCH, ApiError, ApiResource, Client, ClientError, Reflector, missing_rule
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium.serving.work_queue import WorkQueue

Key = tuple[str, str]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Controller(Protocol):
    """Keeps the status of one custom resource, which depends on the pods of its group."""

    name: str
    resource: ApiResource[JsonObject]
    pods: ApiResource[Pod]
    """The pods that any status depends on."""

    def group_of_pod(self, pod: Pod) -> Hashable:
        """What a pod and the resources whose status depends on it have in common."""

    def group_of(self, item: JsonObject) -> Hashable:
        """The same of a resource."""

    def status(self, item: JsonObject, pods: Collection[Pod]) -> JsonObject | None:
        """The status to write, given the pods of its group; None where it is right as it is."""


class Reconciler:
    """One controller at work on a cluster. `watch` and `work` are to be run as tasks."""

    def __init__(
        self, controller: Controller, client: Client, *, rng: random.Random, report: Callable[[str], None]
    ) -> None:
        self._controller = controller
        self._client = client
        self._report = report
        self._queue: WorkQueue[Key] = WorkQueue()
        self._keys: dict[Hashable, dict[Key, None]] = {}
        """The keys of the resources of each group."""
        self._members: dict[Hashable, dict[str, Pod]] = {}
        """The pods of each group, by key."""
        self._group_of: dict[str, Hashable] = {}
        self._items: Reflector[JsonObject] = Reflector(
            client, controller.resource, on_set=self._item_set, on_delete=self._item_gone, report=report, rng=rng
        )
        self._pods: Reflector[Pod] = Reflector(
            client, controller.pods, on_set=self._pod_set, on_delete=self._pod_gone, report=report, rng=rng
        )
        self._problems: dict[Key, str] = {}

    @property
    def unsynced(self) -> str | None:
        """What has not been listed yet; None when all has."""
        missing = [each.resource.name for each in (self._items, self._pods) if not each.synced.is_set()]
        return f"{', '.join(missing)} not listed yet" if missing else None

    async def watch(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._items.run())
            tasks.create_task(self._pods.run())

    async def work(self) -> None:
        """Reconcile what changes; a process that does not lead leaves this to the one that does."""
        await self._items.synced.wait()
        await self._pods.synced.wait()
        while True:
            key = await self._queue.get()
            problem = await self._reconcile(key)
            if problem is None:
                self._queue.succeeded(key)
                self._problems.pop(key, None)
                continue
            if self._problems.get(key) != problem:
                self._problems[key] = problem
                self._report(f"{self._controller.resource.plural} {key[0]}/{key[1]}: {problem}")
            self._queue.retry(key)

    # What changes

    def _item_set(self, item: JsonObject) -> None:
        key = _key(item)
        self._keys.setdefault(self._controller.group_of(item), {})[key] = None
        self._queue.add(key)

    def _item_gone(self, item: JsonObject) -> None:
        _remove(self._keys, self._controller.group_of(item), _key(item))
        self._problems.pop(_key(item), None)

    def _pod_set(self, pod: Pod) -> None:
        group = self._controller.group_of_pod(pod)
        if self._group_of.get(pod.key, group) != group:
            self._pod_gone(pod)
        self._group_of[pod.key] = group
        self._members.setdefault(group, {})[pod.key] = pod
        self._concerns(group)

    def _pod_gone(self, pod: Pod) -> None:
        group = self._group_of.pop(pod.key)
        _remove(self._members, group, pod.key)
        self._concerns(group)

    def _concerns(self, group: Hashable) -> None:
        for key in self._keys.get(group, ()):
            self._queue.add(key)

    # One resource

    async def _reconcile(self, key: Key) -> str | None:
        """Write the status where it differs; gives what went wrong."""
        item = self._items.store.get("/".join(key))
        if item is None:
            return None
        try:
            status = self._controller.status(item, self._members.get(self._controller.group_of(item), {}).values())
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            return f"its status cannot be computed, correct the object: {error}"
        if status is None:
            return None
        path = f"{namespaced(self._controller.resource.path, key[0])}/{key[1]}/status"
        body = {"metadata": {"resourceVersion": item["metadata"]["resourceVersion"]}, "status": status}
        try:
            answer = await self._client.patch(path, body, MERGE_PATCH)
        except ApiError as error:
            if error.conflict or error.not_found:
                return None  # a newer version is on its way, and with it another attempt
            rule = missing_rule(error)
            return f"its status cannot be written: {f'the role needs the rule {rule}' if rule else error}"
        except ClientError as error:
            return f"its status cannot be written: {error}"
        self._items.learn(answer)
        return None


def namespaced(path: str, namespace: str) -> str:
    """The path of a collection in one namespace.

    >>> namespaced("/apis/scheduling.x-k8s.io/v1alpha1/podgroups", "default")
    '/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups'
    """
    folder, _, plural = path.rpartition("/")
    return f"{folder}/namespaces/{namespace}/{plural}"


def _remove(groups: dict[Hashable, dict[K, V]], group: Hashable, key: K) -> None:
    members = groups.get(group, {})
    members.pop(key, None)
    if not members:
        groups.pop(group, None)


def _key(item: JsonObject) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
