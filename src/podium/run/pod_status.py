"""Writes the PodScheduled condition and the nominated node into the status of pods.

A pod may fail many times a second while the API server is slow, so writes wait in one slot per pod: a later one takes
the place of an earlier one that was not sent yet (it keeps the earlier nomination if it has none of its own), and what
the API server has already is not written again. A few are under way at a time, of one pod never two. Before a pod is
bound its writes are withdrawn: a refusal that came after the binding would stand there for good. For the same reason a
write names the version of the pod that it is based on: a scheduler that has just come to lead may not have heard yet
that the one before it has bound the pod.

Also writes the scheduler's condition into the status of PodGroups (scheduling.k8s.io).

One write per group is under way at a time. A later condition takes the place of one that was not sent yet, and what the
API server has already is not written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from podium.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiError, Client, ClientError
from podium.framework import Nomination
from podium.framework.clock import Clock
from podium.kube import Condition, ObjectMeta, Pod, PodGroup
from podium.kube.bounds import UNDECODABLE
from podium.kube.meta import format_time
from podium.run.activity import WriteFailures

POD_SCHEDULED = "PodScheduled"
SENDERS = 8
ATTEMPTS = 4
FIRST_PAUSE = 0.01
"""Seconds before the second attempt; five times as long before each further one."""
MOST_WRITTEN = 1000
"""Pods whose last write is remembered until the watch brings it; the oldest are forgotten."""


class KnownPods(NamedTuple):
    """What the informers know of pods."""

    latest: Callable[[Pod], Pod | None]
    """Gives the newest known version of a pod."""
    learn: Callable[[bytes], Pod | None]
    """Is shown the JSON of a pod that was asked for, and gives it."""


class StatusWrite(NamedTuple):
    """A condition (status, reason, message of PodScheduled), a nomination, or both."""

    pod: Pod
    condition: tuple[str, str, str] | None
    nomination: Nomination | None

    def then(self, later: StatusWrite | None) -> StatusWrite:
        """Both in one; what the later one says counts."""
        if later is None:
            return self
        return StatusWrite(later.pod, later.condition or self.condition, later.nomination or self.nomination)


class _UnderWay:
    """A write being sent. `wanted` no more once the pod is to be bound."""

    def __init__(self) -> None:
        self.wanted = True
        self.ended = asyncio.Event()


class PodStatuses:
    """The writes that wait, by pod. `run` sends them."""

    def __init__(self, client: Client, clock: Clock, pods: KnownPods, failures: WriteFailures) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self.failures = failures
        self._waiting: dict[str, StatusWrite] = {}
        self._under_way: dict[str, _UnderWay] = {}
        self._written: dict[str, tuple[Pod, Pod]] = {}  # as it was known, and as it is since our write
        self._work = asyncio.Event()

    def write(
        self, pod: Pod, condition: tuple[str, str, str] | None = None, nomination: Nomination | None = None
    ) -> None:
        write = StatusWrite(pod, condition, nomination)
        earlier = self._waiting.pop(pod.uid, None)
        self._waiting[pod.uid] = write if earlier is None else earlier.then(write)
        self._work.set()

    @property
    def waiting(self) -> int:
        """How many pods there is still something to write about, being written included."""
        return len(self._waiting.keys() | self._under_way.keys())

    async def withdraw(self, uid: str) -> None:
        """Write nothing more about a pod that is to be bound; returns when nothing is under way either."""
        self._waiting.pop(uid, None)
        under_way = self._under_way.get(uid)
        if under_way is not None:
            under_way.wanted = False
            await under_way.ended.wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(SENDERS):
                group.create_task(self._send_all())

    async def drained(self) -> None:
        """Return when nothing waits or is under way; `run` must be running."""
        while self._waiting or self._under_way:  # noqa: ASYNC110  new writes may come while one waits
            await asyncio.sleep(0.01)

    async def _send_all(self) -> None:
        while True:
            # One write of a pod at a time: an older one must not arrive after a newer one.
            uid = next((each for each in self._waiting if each not in self._under_way), None)
            if uid is None:
                self._work.clear()
                await self._work.wait()
                continue
            under_way = self._under_way[uid] = _UnderWay()
            try:
                await self._send(self._waiting.pop(uid), under_way)
            finally:
                del self._under_way[uid]
                under_way.ended.set()

    async def _send(self, write: StatusWrite, under_way: _UnderWay) -> None:
        uid = write.pod.uid
        for attempt in range(ATTEMPTS):
            write = write.then(self._waiting.pop(uid, None))
            pod = self._pods.latest(write.pod)
            if pod is None or pod.node_name or not under_way.wanted:
                return
            since = self._as_written(pod)
            patch = status_patch(since, write.condition, write.nomination, self._clock.now())
            if not patch:
                return
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            try:
                answer = await self._client.patch(
                    f"{path}/status", {"metadata": condition_of(since), "status": patch}, STRATEGIC_MERGE_PATCH
                )
            except ClientError as error:
                if isinstance(error, ApiError) and error.not_found:
                    return
                if attempt == ATTEMPTS - 1 or not worth_repeating(error):
                    self.failures.failed("writing the status of", pod.key, error)
                    return
                if isinstance(error, ApiError) and error.conflict:
                    await self._read(path)
            else:
                self._remember(pod, write, _version_in(answer))
                return
            await asyncio.sleep(FIRST_PAUSE * 5**attempt)

    async def _read(self, path: str) -> None:
        """Take over a pod that was changed by another."""
        try:
            self._pods.learn(await self._client.get(path))
        except ClientError:
            return  # the next attempt says what is wrong

    def _as_written(self, pod: Pod) -> Pod:
        """The pod with what we wrote into it, where the watch has brought nothing newer yet."""
        known, since = self._written.get(pod.uid, (None, pod))
        if known is pod:
            return since
        self._written.pop(pod.uid, None)
        return pod

    def _remember(self, pod: Pod, write: StatusWrite, version: str) -> None:
        status = self._as_written(pod).status
        if write.nomination is not None:
            status = replace(status, nominated_node_name=write.nomination.node_name)
        if write.condition is not None:
            state, reason, message = write.condition
            written = Condition(type=POD_SCHEDULED, status=state, reason=reason, message=message)
            others = (each for each in status.conditions if each.type != POD_SCHEDULED)
            status = replace(status, conditions=(*others, written))
        metadata = replace(pod.metadata, resource_version=version)
        self._written[pod.uid] = (pod, replace(pod, metadata=metadata, status=status))
        if len(self._written) > MOST_WRITTEN:
            del self._written[next(iter(self._written))]


def condition_of(pod: Pod) -> dict[str, str]:
    """What the API server is to compare, so that a write counts only for this pod as it is known."""
    version = pod.metadata.resource_version
    return {"uid": pod.uid, **({"resourceVersion": version} if version else {})}


class _Answered(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


def _version_in(answer: bytes) -> str:
    """The version that the API server has given a pod; empty where it does not say."""
    try:
        return msgspec.json.decode(answer, type=_Answered).metadata.resource_version
    except UNDECODABLE:
        return ""


def worth_repeating(error: ClientError) -> bool:
    """Whether the same write may succeed a little later: no answer, or a fault of the server's own."""
    return not isinstance(error, ApiError) or error.too_many or error.conflict or error.status >= 500


def status_patch(
    pod: Pod, condition: tuple[str, str, str] | None, nomination: Nomination | None, now: float
) -> dict[str, Any]:
    """What differs from the pod's status; empty when nothing does."""
    patch: dict[str, Any] = {}
    if nomination is not None and nomination.node_name != pod.status.nominated_node_name:
        patch["nominatedNodeName"] = nomination.node_name or None
    if condition is not None:
        status, reason, message = condition
        before = next((each for each in pod.status.conditions if each.type == POD_SCHEDULED), None)
        if before is None or (before.status, before.reason, before.message) != condition:
            written = {"type": POD_SCHEDULED, "status": status, "reason": reason, "message": message}
            if pod.metadata.generation:
                written["observedGeneration"] = pod.metadata.generation  # type: ignore[assignment]
            if before is None or before.status != status:
                written["lastTransitionTime"] = format_time(now)
            patch["conditions"] = [written]
    return patch


class GroupStatuses:
    """The conditions that wait to be written; `latest` gives the newest known version of a PodGroup by its key.

    `served_as` is the group and version in which the API server has them.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        latest: Callable[[str], PodGroup | None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        report: Callable[[str], None],
        served_as: Callable[[], str],
    ) -> None:
        self._served_as = served_as
        self._client = client
        self._clock = clock
        self._latest = latest
        self._spawn = spawn
        self._report = report
        self._waiting: dict[str, Condition] = {}
        self._under_way: set[str] = set()

    def write(self, group: PodGroup, condition: Condition) -> None:
        self._waiting[group.key] = condition
        if group.key not in self._under_way:
            self._under_way.add(group.key)
            self._spawn(self._send_all(group.key))

    async def _send_all(self, key: str) -> None:
        try:
            while (condition := self._waiting.pop(key, None)) is not None:
                await self._send(key, condition)
        finally:
            self._under_way.discard(key)

    async def _send(self, key: str, condition: Condition) -> None:
        for attempt in range(ATTEMPTS):
            group = self._latest(key)
            patch = None if group is None else group_status_patch(group, condition, self._clock.now())
            if group is None or patch is None or key in self._waiting:
                return
            path = f"/apis/{self._served_as()}/namespaces/{group.namespace}/podgroups/{group.name}/status"
            try:
                await self._client.patch(path, {"metadata": {"uid": group.uid}, "status": patch}, MERGE_PATCH)
            except ClientError as error:
                if isinstance(error, ApiError) and error.not_found:
                    return
                if attempt == ATTEMPTS - 1 or not worth_repeating(error):
                    self._report(f"writing the status of PodGroup {key} failed: {error}")
                    return
                await asyncio.sleep(FIRST_PAUSE * 5**attempt)
            else:
                return


def group_status_patch(group: PodGroup, condition: Condition, now: float) -> dict[str, Any] | None:
    """The conditions with this one among them; None where the PodGroup has it already."""
    before = next((each for each in group.status.conditions if each.type == condition.type), None)
    if before is not None:
        if before.status == "True" != condition.status:
            return None
        if _content(before) == _content(condition):
            return None
    changed = before is None or before.status != condition.status
    written = {
        **_plain(condition),
        "lastTransitionTime": format_time(now) if changed or before is None else before.last_transition_time,
    }
    others = [_plain(each) for each in group.status.conditions if each.type != condition.type]
    return {"conditions": [*others, written]}


def _content(condition: Condition) -> tuple[str, str, str, int]:
    return condition.status, condition.reason, condition.message, condition.observed_generation


def _plain(condition: Condition) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
    }
    if condition.last_transition_time is not None:
        plain["lastTransitionTime"] = condition.last_transition_time
    return plain
