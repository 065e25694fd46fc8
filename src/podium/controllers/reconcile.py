"""Has a controller look at its custom resources whenever something changes that they depend on, and carries out what it
gives: patches, events, log lines.

Keys are ("namespace", "name") of the custom resource. A key is reconciled once for however many changes came together,
and again later where that failed, so a controller only compares what is with what should be.

`Members` knows which objects of one collection concern which custom resources: those of the same group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from podium.client import MERGE_PATCH, ApiError, Client, ClientError, missing_rule
from podium.controllers.controller import (
    Controller,
    EventNote,
    ReconcileResult,
    Related,
    RelatedCollection,
    invalid,
    namespaced,
)
from podium.controllers.watches import SharedWatch
from podium.kube.bounds import UNDECODABLE
from podium.kube.json_object import JsonObject
from podium.kube.meta import ObjectReference
from podium.serving.log import LOG
from podium.serving.work_queue import WorkQueue

K = TypeVar("K")
V = TypeVar("V")

NO_GROUP = object()
"""The group of a custom resource whose group cannot be read; no object belongs to it."""


class Members:
    """The objects and the custom resources of each group; `concerns` is called with the key of each custom resource
    that a change concerns."""

    def __init__(
        self, collection: RelatedCollection, watch: SharedWatch, concerns: Callable[[tuple[str, str]], None]
    ) -> None:
        self.watch = watch
        self.plural = collection.resource.plural
        self._collection = collection
        self._concerns = concerns
        self._group_of_key: dict[tuple[str, str], Hashable] = {}
        self._keys: dict[Hashable, dict[tuple[str, str], None]] = {}
        self._group_of_object: dict[str, Hashable] = {}
        self._objects: dict[Hashable, dict[str, Any]] = {}
        watch.listen(self._set, self._delete)

    def of(self, key: tuple[str, str]) -> Collection[Any]:
        """The objects that concern a custom resource."""
        return self._objects.get(self._group_of_key.get(key, NO_GROUP), {}).values()

    def set_item(self, key: tuple[str, str], item: JsonObject) -> None:
        try:
            group = self._collection.group_of_item(item)
        except (TypeError, LookupError, AttributeError):
            group = NO_GROUP
        self.watch.needed.set()
        self.delete_item(key)
        self._group_of_key[key] = group
        self._keys.setdefault(group, {})[key] = None

    def delete_item(self, key: tuple[str, str]) -> None:
        _remove(self._keys, self._group_of_key.pop(key, None), key)

    def _set(self, found: Any) -> None:
        key, group = _object_key(found), self._collection.group_of(found)
        if self._group_of_object.get(key, group) != group:
            self._delete(found)
        if group is not None:
            self._group_of_object[key] = group
            self._objects.setdefault(group, {})[key] = found
            self._changed(group)

    def _delete(self, found: Any) -> None:
        key = _object_key(found)
        if (group := self._group_of_object.pop(key, None)) is not None:
            _remove(self._objects, group, key)
            self._changed(group)

    def _changed(self, group: Hashable) -> None:
        for key in self._keys.get(group, ()):
            self._concerns(key)


def _object_key(found: Any) -> str:
    if not isinstance(found, dict):
        return str(found.key)
    metadata = found["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _remove(groups: dict[Hashable, dict[K, V]], group: Hashable, key: K) -> None:
    members = groups.get(group, {})
    members.pop(key, None)
    if not members:
        groups.pop(group, None)


Key = tuple[str, str]

UNCHANGED, WRITTEN, FAILED = "unchanged", "written", "failed"


class Recorder(Protocol):
    """Records events."""

    def record_on(
        self,
        regarding: ObjectReference,
        related: ObjectReference | None,
        type: str,
        reason: str,
        action: str,
        note: str,
        controller: str,
    ) -> None: ...


class WriteError(Exception):
    """An object could not be read or written; the sentence says why."""


class Reconciler:
    """One controller at work on a cluster; `work` is to be run as a task by the process that leads."""

    def __init__(
        self,
        controller: Controller,
        client: Client,
        watches: Mapping[str, SharedWatch],
        recorder: Recorder,
        *,
        report: Callable[[str], None],
    ) -> None:
        self.controller = controller
        self.results: Counter[str] = Counter()
        """How many reconciliations ended how."""
        self._client = client
        self._recorder = recorder
        self._report = report
        self.queue: WorkQueue[Key] = WorkQueue()
        self._items = watches[controller.resource.path]
        self._members = [Members(each, watches[each.resource.path], self.queue.add) for each in controller.related]
        self._problems: dict[Key, EventNote | str] = {}
        """What was last reported of each."""
        self._items.listen(self._item_set, self._item_gone)
        self._items.needed.set()

    async def work(self) -> None:
        """Reconcile what changes, one by one."""
        await self._items.reflector.synced.wait()
        LOG.info("controller %s runs: %d %s", self.controller.name, len(self._items.reflector.store), self._plural)
        while True:
            key = await self.queue.get()
            for each in self._members:
                await each.watch.settled.wait()
            try:
                result = await self._reconcile(key)
            except WriteError as error:
                result = FAILED
                if self._problems.get(key) != str(error):
                    self._problems[key] = str(error)
                    self._report(f"{self.controller.kind} {'/'.join(key)}: {error}")
                self.queue.retry(key)
            else:
                self.queue.succeeded(key)
            self.results[result] += 1

    @property
    def _plural(self) -> str:
        return self.controller.resource.plural

    # What changes

    def _item_set(self, item: JsonObject) -> None:
        key = _key(item)
        for each in self._members:
            each.set_item(key, item)
        self.queue.add(key)

    def _item_gone(self, item: JsonObject) -> None:
        key = _key(item)
        for each in self._members:
            each.delete_item(key)
        self._problems.pop(key, None)

    # One resource

    async def _reconcile(self, key: Key) -> str:
        item = self._items.reflector.store.get("/".join(key) if key[0] else key[1])
        if item is None:
            return UNCHANGED
        related = {each.plural: each.of(key) for each in self._members}
        result = self._result(item, await self._with_fetched(item, key[0], related))
        self._state_problem(key, item, result.problem)
        differs = result.status is not None or result.spec is not None
        if differs and not await self._write(key, item, result):
            return UNCHANGED  # a newer version is on its way, and with it another attempt
        if result.event is not None:
            self._record(item, result.event)
        if result.due is not None:
            self.queue.add_after(key, result.due)
        return WRITTEN if differs else UNCHANGED

    def _result(self, item: JsonObject, related: Related) -> ReconcileResult:
        try:
            return self.controller.reconcile(item, related)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            return ReconcileResult(problem=invalid(f"its status cannot be computed, correct the object: {error}"))

    async def _with_fetched(self, item: JsonObject, namespace: str, related: dict[str, Any]) -> dict[str, Any]:
        fetched = self.controller.fetched
        if fetched is None:
            return related
        plural = fetched.resource.plural
        name = fetched.name_of(item)
        if not name:
            return {**related, plural: ()}
        try:
            answer = await self._client.get(f"{namespaced(fetched.resource.path, namespace)}/{name}")
            return {**related, plural: (msgspec.json.decode(answer),)}
        except ApiError as error:
            if error.not_found:
                return {**related, plural: ()}
            raise WriteError(f"{plural} {name} cannot be read: {_reason(error)}") from None
        except (ClientError, *UNDECODABLE) as error:
            raise WriteError(f"{plural} {name} cannot be read: {error}") from None

    async def _write(self, key: Key, item: JsonObject, result: ReconcileResult) -> bool:
        """Patch what differs; False where the object has changed or gone meanwhile. Raises WriteError."""
        parts = (("spec", result.spec), ("status", result.status))
        body = {name: value for name, value in parts if value is not None}
        path = f"{namespaced(self.controller.resource.path, key[0])}/{key[1]}"
        version = item["metadata"]["resourceVersion"]
        try:
            if "status" in body and self._has_status_part:
                status = {"status": body.pop("status")}
                version = await self._patch(f"{path}/status", status, version)
            if body:
                await self._patch(path, body, version)
        except ApiError as error:
            if error.conflict or error.not_found:
                return False
            raise WriteError(f"it cannot be written: {_reason(error)}") from None
        except ClientError as error:
            raise WriteError(f"it cannot be written: {error}") from None
        return True

    @property
    def _has_status_part(self) -> bool:
        """Whether the server writes the status apart from the rest, as the definition asks for."""
        return f"{self._plural}/status" in self._items.parts

    async def _patch(self, path: str, body: JsonObject, version: str) -> str:
        """Gives the version that was written."""
        answer = await self._client.patch(path, {"metadata": {"resourceVersion": version}, **body}, MERGE_PATCH)
        written = self._items.reflector.learn(answer)
        return version if written is None else str(written["metadata"]["resourceVersion"])

    # What is said

    def _state_problem(self, key: Key, item: JsonObject, problem: EventNote | None) -> None:
        if problem is None:
            self._problems.pop(key, None)
        elif self._problems.get(key) != problem:
            self._problems[key] = problem
            self._report(f"{self.controller.kind} {'/'.join(key)}: {problem.note}")
            self._record(item, problem)

    def _record(self, item: JsonObject, event: EventNote) -> None:
        """The reference has no version: an event that says the same of a later version is the same event again."""
        metadata = item["metadata"]
        regarding = ObjectReference(
            api_version=self.controller.resource.group_version,
            kind=self.controller.kind,
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata.get("uid", ""),
        )
        source = f"podium-{self.controller.name}"
        self._recorder.record_on(regarding, None, event.type, event.reason, "Reconciling", event.note, source)


def _reason(error: ApiError) -> str:
    rule = missing_rule(error)
    return f"the role needs the rule {rule}" if rule else str(error)


def _key(item: JsonObject) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
