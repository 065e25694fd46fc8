"""Delivers what happens in the cluster to the engine: one reflector for each kind that placing pods depends on.

Kinds that only a plugin asks about (custom resources, named "plural.group") are looked up in the API server's
discovery first. Scheduling begins when they have been listed too; while the server does not know one, or does not show
it, the plugin sees none of it, and scheduling goes on. A server that is away or fails is waited for: pods must not be
bound past a quota because its list came with a 503.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from podium.client.api_errors import ApiError, ClientError
from podium.client.client import Client
from podium.client.problem_reports import SharedOutage
from podium.client.reflector import Reflector, WatchOptions
from podium.client.resource import GATED, RESOURCES, WATCHED, ApiResource, NoSuchKindError, find_resource
from podium.engine.intake import Intake
from podium.framework.declarations import is_plain
from podium.framework.profile import ProfileRuntime
from podium.kube import Node, Pod
from podium.kube.bounds import UNDECODABLE

RETRY = 30.0
"""Seconds until a custom kind that the server did not know is looked for again."""
UNANSWERED = 1.0
"""The same where the server did not answer at all."""
GLANCE = 0.02
"""Seconds between looks whether a custom kind has been listed."""


class PodFollower(Protocol):
    """Something that sees every pod before the engine does."""

    def observe(self, pod: Pod) -> None: ...

    def gone(self, pod: Pod) -> None: ...


class WatchedKinds(NamedTuple):
    """What informers keep up to date."""

    custom: Iterable[str] = ()
    """Names of custom resources."""
    resources: Iterable[ApiResource[Any]] = WATCHED
    keep_raw: bool = False
    """Whether the JSON of pods and nodes is kept beside the objects."""


class Informers:
    """The reflectors of a scheduler. `changed` is called after whatever may give the scheduler something to do."""

    def __init__(
        self,
        client: Client,
        intake: Intake,
        watched: WatchedKinds,
        *,
        changed: Callable[[], None],
        follower: PodFollower | None = None,
        rng: random.Random,
        report: Callable[[str], None],
    ) -> None:
        self._client = client
        self._intake = intake
        self._changed = changed
        self._follower = follower
        self._rng = rng
        self._report = report
        self._outage = SharedOutage(report)
        self._custom = {name: asyncio.Event() for name in sorted(watched.custom)}
        """Set when all of it is here, or when it is known why none is."""
        self.by_kind: dict[type, Reflector[Any]] = {
            resource.type: self._reflector(resource, keep_raw=watched.keep_raw and resource.type in (Pod, Node))
            for resource in watched.resources
            if resource.type is not None
        }

    def _reflector(self, resource: ApiResource[Any], *, keep_raw: bool) -> Reflector[Any]:
        return Reflector(
            self._client,
            resource,
            on_set=self._set,
            on_delete=self._delete,
            report=self._report,
            rng=self._rng,
            options=WatchOptions(outage=self._outage, keep_raw=keep_raw),
        )

    def _set(self, item: Any) -> None:
        if self._follower is not None and isinstance(item, Pod):
            self._follower.observe(item)
        self._intake.set(item)
        self._changed()

    def _delete(self, item: Any) -> None:
        if self._follower is not None and isinstance(item, Pod):
            self._follower.gone(item)
        self._intake.delete(item)
        self._changed()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in self.by_kind.values():
                group.create_task(reflector.run())
            for name in self._custom:
                group.create_task(self._watch_custom(name))

    async def synced(self) -> None:
        """Return once every kind has been listed and delivered."""
        for reflector in self.by_kind.values():
            await reflector.synced.wait()
        for settled in self._custom.values():
            await settled.wait()

    @property
    def waiting_for(self) -> list[str]:
        """The kinds that have not been listed yet."""
        kinds = [each.resource.name for each in self.by_kind.values() if not each.synced.is_set()]
        return kinds + [name for name, settled in self._custom.items() if not settled.is_set()]

    def latest(self, pod: Pod) -> Pod | None:
        """The newest version known of this very pod; None when it is gone."""
        found: Pod | None = self.by_kind[Pod].store.get(pod.key)
        return found if found is not None and found.uid == pod.uid else None

    # Custom resources

    async def _watch_custom(self, name: str) -> None:
        resource = await self._find_custom(name)

        def moved(item: Any, value: Any) -> None:
            meta = item["metadata"]
            key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
            self._intake.set_custom(name, key, value)
            self._changed()

        reflector = Reflector(
            self._client,
            resource,
            on_set=lambda item: moved(item, item),
            on_delete=lambda item: moved(item, None),
            report=self._report,
            rng=self._rng,
            options=WatchOptions(outage=self._outage),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(reflector.run())
            while not (reflector.synced.is_set() or reflector.refused):  # noqa: ASYNC110  either may come first
                await asyncio.sleep(GLANCE)
            self._custom[name].set()

    async def _find_custom(self, name: str) -> ApiResource[Any]:
        """Where the API server serves "plural.group", at the version it prefers."""
        group = name.partition(".")[2]
        reported = False
        while True:
            answered = True
            try:
                return await find_resource(self._client, name)
            except NoSuchKindError as error:
                problem = str(error)
            except ApiError as error:
                problem = f"the API server does not serve {group}" if error.not_found else str(error)
                answered = error.final
            except ClientError as error:
                problem, answered = str(error), False
            except (*UNDECODABLE, LookupError, TypeError):
                problem = f"what the API server says about {group} cannot be understood"
            if answered:
                self._custom[name].set()
            if not reported:
                self._report(f"plugins that read {name} see none of it for now: {problem}")
                reported = True
            await asyncio.sleep(RETRY if answered else UNANSWERED)


def watched_kinds(runtimes: Iterable[ProfileRuntime]) -> list[ApiResource[Any]]:
    """What every scheduler watches, and what else plugins of these profiles read."""
    kinds: set[type] = set()
    ended_pods = False
    for runtime in runtimes:
        kinds.update(kind for plugin in runtime.plugins.values() for kind in plugin.depends_on.kinds or ())
        ended_pods = ended_pods or any(plugin.watches_ended_pods for plugin in runtime.plugins.values())
        kinds.update(kind for kind, gate in GATED.items() if gate in runtime.handle.gates)
    watched = {kind: resource for kind, resource in RESOURCES.items() if kind in kinds or resource in WATCHED}
    if ended_pods:
        watched[Pod] = replace(watched[Pod], params={})
    return list(watched.values())


def custom_kinds(runtimes: Iterable[ProfileRuntime]) -> set[str]:
    """The custom resources ("plural.group"), and the like of the core group, that plugins of these profiles read."""
    return {name for runtime in runtimes for name in _resources_of(runtime) if is_plain(name)}


def _resources_of(runtime: ProfileRuntime) -> Iterator[str]:
    for plugin in runtime.plugins.values():
        yield from (resource.partition("/")[0] for resource in plugin.resources)
        for interest in plugin.interests() or ():
            yield interest.resource
