"""Writes the scheduler's condition into the status of PodGroups (scheduling.k8s.io).

One write per group is under way at a time. A later condition takes the place of one that was not sent yet, and what the
API server has already is not written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from podium.client import MERGE_PATCH, ApiError, Client, ClientError
from podium.framework.clock import Clock
from podium.kube import Condition, PodGroup
from podium.kube.meta import format_time
from podium.run.pod_status import ATTEMPTS, FIRST_PAUSE, worth_repeating


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
