"""What the scheduler writes into a pod's status: the PodScheduled condition and the nominated node.

A pod may fail many times a second while the API server is slow, so writes wait in one slot per pod: a later one takes
the place of an earlier one that was not sent yet (it keeps the earlier nomination if it has none of its own), and what
the API server has already is not written again. A few are under way at a time; they never stand in the way of binds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from podium.client import STRATEGIC_MERGE_PATCH, ApiError, Client, ClientError
from podium.framework import Nomination
from podium.framework.clock import Clock
from podium.kube import Pod
from podium.live.complaints import Complaints

SENDERS = 8
ATTEMPTS = 4
FIRST_PAUSE = 0.01
"""Seconds before the second attempt; five times as long before each further one."""


class Write(NamedTuple):
    """A condition (status, reason, message of PodScheduled), a nomination, or both."""

    pod: Pod
    condition: tuple[str, str, str] | None
    nomination: Nomination | None


class PodStatuses:
    """The writes that wait, by pod. `run` sends them; `latest` gives the newest known version of a pod."""

    def __init__(
        self, client: Client, clock: Clock, latest: Callable[[Pod], Pod | None], complaints: Complaints
    ) -> None:
        self._client = client
        self._clock = clock
        self._latest = latest
        self._complaints = complaints
        self._waiting: dict[str, Write] = {}
        self._sending = 0
        self._news = asyncio.Event()

    def write(
        self, pod: Pod, condition: tuple[str, str, str] | None = None, nomination: Nomination | None = None
    ) -> None:
        earlier = self._waiting.pop(pod.uid, None)
        if earlier is not None:
            condition = condition or earlier.condition
            nomination = nomination or earlier.nomination
        self._waiting[pod.uid] = Write(pod, condition, nomination)
        self._news.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(SENDERS):
                group.create_task(self._send_all())

    async def drained(self) -> None:
        """Return when nothing waits or is under way."""
        while self._waiting or self._sending:
            await asyncio.sleep(0.01)

    async def _send_all(self) -> None:
        while True:
            while not self._waiting:
                self._news.clear()
                await self._news.wait()
            write = self._waiting.pop(next(iter(self._waiting)))
            self._sending += 1
            try:
                await self._send(write)
            finally:
                self._sending -= 1

    async def _send(self, write: Write) -> None:
        pod = self._latest(write.pod)
        if pod is None or pod.node_name:
            return
        patch = status_patch(pod, write.condition, write.nomination, self._clock.now())
        if not patch:
            return
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        body = {"metadata": {"uid": pod.uid}, "status": patch}
        for attempt in range(ATTEMPTS):
            try:
                await self._client.patch(path, body, STRATEGIC_MERGE_PATCH)
                return
            except ClientError as error:
                # A later failure of the pod brings its own write; a pod that is gone needs none.
                if isinstance(error, ApiError) and (error.not_found or error.conflict):
                    return
                if attempt == ATTEMPTS - 1 or pod.uid in self._waiting or not worth_repeating(error):
                    self._complaints.failed("writing the status of", pod.key, error)
                    return
            await asyncio.sleep(FIRST_PAUSE * 5**attempt)


def worth_repeating(error: ClientError) -> bool:
    """Whether the same write may succeed a little later: no answer, or the server's own trouble."""
    return not isinstance(error, ApiError) or error.too_many or error.status >= 500


def status_patch(
    pod: Pod, condition: tuple[str, str, str] | None, nomination: Nomination | None, now: float
) -> dict[str, Any]:
    """What differs from the pod's status; empty when nothing does."""
    patch: dict[str, Any] = {}
    if nomination is not None and nomination.node_name != pod.status.nominated_node_name:
        patch["nominatedNodeName"] = nomination.node_name or None
    if condition is not None:
        status, reason, message = condition
        before = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
        if before is None or (before.status, before.reason, before.message) != condition:
            written = {"type": "PodScheduled", "status": status, "reason": reason, "message": message}
            if pod.metadata.generation:
                written["observedGeneration"] = pod.metadata.generation  # type: ignore[assignment]
            if before is None or before.status != status:
                written["lastTransitionTime"] = rfc3339(now)
            patch["conditions"] = [written]
    return patch


def rfc3339(now: float) -> str:
    """A moment as Kubernetes writes it, to the second."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
