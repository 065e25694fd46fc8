"""Watches the collections that controllers read, each once however many controllers read it.

A custom resource may be served later than this process starts, or never: it is looked for until it is, and meanwhile
controllers that only depend on it see none. Where controllers want different parts of a collection (pods with one
label, all pods), all of it is watched, and each takes what concerns it. Nothing is watched before a custom resource
depends on it: a cluster without quotas is not asked for all its pods.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec

from podium.client import ApiError, ApiResource, Client, ClientError, Reflector
from podium.kube.bounds import UNDECODABLE

RETRY_PERIOD = 5.0
"""Seconds until a resource that is not served is looked for again."""

Listener = Callable[[Any], None]


class SharedWatch:
    """One collection, watched from when it is needed. `run` it as a task; listeners are added before."""

    def __init__(
        self, client: Client, resource: ApiResource[Any], *, report: Callable[[str], None], rng: random.Random
    ) -> None:
        self.resource = resource
        self.needed = asyncio.Event()
        self.settled = asyncio.Event()
        """Set when all of it is here, or when it is known that it is not served."""
        self.parts: frozenset[str] = frozenset()
        """What the server serves of it: "podgroups", "podgroups/status"."""
        self._client = client
        self._report = report
        self._on_set: list[Listener] = []
        self._on_delete: list[Listener] = []
        self.reflector: Reflector[Any] = Reflector(
            client, resource, on_set=self._set, on_delete=self._delete, report=report, rng=rng
        )

    def listen(self, on_set: Listener, on_delete: Listener) -> None:
        self._on_set.append(on_set)
        self._on_delete.append(on_delete)

    async def run(self) -> None:
        await self.needed.wait()
        if self.resource.type is None:  # a custom resource
            await self._until_served()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.reflector.run())
            await self.reflector.synced.wait()
            self.settled.set()

    async def _until_served(self) -> None:
        reported = ""
        while (problem := await self._unserved()) is not None:
            if problem != reported:
                reported = problem
                self._report(problem)
            await asyncio.sleep(RETRY_PERIOD)
        if reported:
            self._report(f"{self.resource.name} is served now")

    async def _unserved(self) -> str | None:
        """Why it cannot be watched yet; None when it can."""
        try:
            answer = await self._client.get(f"/apis/{self.resource.group_version}")
            self.parts = frozenset(each["name"] for each in msgspec.json.decode(answer)["resources"])
            found = self.resource.plural in self.parts
        except ApiError as error:
            if not error.not_found:
                return f"{self.resource.name} cannot be looked for: {error}"
            found = False
        except ClientError as error:
            return f"{self.resource.name} cannot be looked for: {error}"
        except (*UNDECODABLE, LookupError, TypeError):
            return f"{self.resource.name}: what the API server says about {self.resource.group} cannot be understood"
        if found:
            return None
        self.settled.set()
        return (
            f"{self.resource.name} is not installed, and is waited for: "
            f"podium crds {self.resource.plural} | kubectl apply -f -"
        )

    def _set(self, item: Any) -> None:
        for listener in self._on_set:
            listener(item)

    def _delete(self, item: Any) -> None:
        for listener in self._on_delete:
            listener(item)


def shared_watches(
    client: Client, resources: Iterable[ApiResource[Any]], *, report: Callable[[str], None], rng: random.Random
) -> dict[str, SharedWatch]:
    """One watch for each collection, by its path."""
    wanted: dict[str, ApiResource[Any]] = {}
    for resource in resources:
        known = wanted.setdefault(resource.path, resource)
        if known.params != resource.params:
            wanted[resource.path] = replace(known, params={})
    return {path: SharedWatch(client, resource, report=report, rng=rng) for path, resource in wanted.items()}
