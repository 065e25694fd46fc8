"""Writes what was measured of nodes onto them as annotations, for schedulers to read.

Each set of annotations has a key that says when it was measured. It is written by server-side apply under a field
manager of its own, so that it takes nothing away from others, and only where it says something new: a number that
moved by more than the tolerance, a key that came or went, or a time that is half as old as it may get. What is not
measured any more stays until it is too old, and is then taken away: no number is better than a wrong one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from podium.client import APPLY_PATCH, MERGE_PATCH, ApiError, Client, ClientError, missing_rule
from podium.framework.row_numbers import read_decimal
from podium.kube import Node
from podium.kube.meta import format_time, parse_time
from podium.kube.requests import offered

AT_ONCE = 16
"""Writes under way at the same time."""
NODES = "/api/v1/nodes"


class AnnotationKeys(NamedTuple):
    """A set of annotations that belong together."""

    manager: str
    """The field manager that owns them."""
    keys: Sequence[str]
    measured_at: str
    """The key that says when they were measured."""


class AnnotationOutcome(Struct):
    """What became of the nodes in one round, by name."""

    written: list[str] = []
    unchanged: list[str] = []
    removed: list[str] = []
    """Their annotations were too old."""
    unmeasured: list[str] = []
    """Their annotations, if they have any, are left as they are for now."""
    failed: dict[str, str] = {}

    def __str__(self) -> str:
        parts = {
            "annotated": self.written,
            "unchanged": self.unchanged,
            "not measured": self.unmeasured,
            "no longer measured and cleared": self.removed,
            "failed": self.failed,
        }
        return ", ".join(f"{len(names)} {what}" for what, names in parts.items() if names) or "no nodes"


class ForbiddenError(Exception):
    """The API server does not let nodes be annotated."""


class Annotator:
    """`tolerance`: the share of what a node has by which a number may move before it is written again."""

    def __init__(self, client: Client, kind: AnnotationKeys, *, max_age: float, tolerance: float = 0.0) -> None:
        self._client = client
        self._kind = kind
        self._max_age = max_age
        self._tolerance = tolerance

    async def write(
        self, nodes: Sequence[Node], measured: Mapping[str, Mapping[str, str]], now: float
    ) -> AnnotationOutcome:
        """Write what is new and take away what is too old; raises ForbiddenError where that is not allowed."""
        outcome, turn = AnnotationOutcome(), asyncio.Semaphore(AT_ONCE)

        async def one(node: Node) -> None:
            async with turn:
                await self._handle(node, measured.get(node.name), now, outcome)

        tasks = [asyncio.ensure_future(one(node)) for node in nodes]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return outcome

    async def _handle(
        self, node: Node, wanted: Mapping[str, str] | None, now: float, outcome: AnnotationOutcome
    ) -> None:
        measured_at = self._measured_at(node)
        try:
            if wanted:
                if self._says_the_same(node, wanted) and now - measured_at < self._max_age / 2:
                    outcome.unchanged.append(node.name)
                else:
                    await self._apply(node, wanted, now)
                    outcome.written.append(node.name)
            elif self._kind.measured_at in node.annotations and now - measured_at > self._max_age:
                await self._remove(node)
                outcome.removed.append(node.name)
            else:
                outcome.unmeasured.append(node.name)
        except ApiError as error:
            if error.forbidden and (rule := missing_rule(error)):
                raise ForbiddenError(f"nodes cannot be annotated: the role needs the rule {rule}") from None
            if not (error.not_found or error.conflict):  # a node that went meanwhile needs no annotations
                outcome.failed[node.name] = str(error)
        except ClientError as error:
            outcome.failed[node.name] = str(error)

    def _measured_at(self, node: Node) -> float:
        """When what is on the node was measured; long ago where that cannot be read."""
        try:
            return parse_time(node.annotations.get(self._kind.measured_at, ""))
        except ValueError:
            return 0.0

    def _says_the_same(self, node: Node, wanted: Mapping[str, str]) -> bool:
        present = {key: node.annotations[key] for key in self._kind.keys if key in node.annotations}
        if present.keys() != wanted.keys():
            return False
        amounts = offered(node.status.allocatable)
        return all(self._is_close(present[key], wanted[key], amounts.get(key.split("-free-")[-1], 0)) for key in wanted)

    def _is_close(self, present: str, wanted: str, allocatable: int) -> bool:
        if present == wanted:
            return True
        before, after = read_decimal(present), read_decimal(wanted)
        return before is not None and after is not None and abs(after - before) <= self._tolerance * allocatable

    async def _apply(self, node: Node, wanted: Mapping[str, str], now: float) -> None:
        """With the uid: applying to a node that is gone would create one."""
        annotations = {**wanted, self._kind.measured_at: format_time(now)}
        metadata = {"name": node.name, "uid": node.uid, "annotations": annotations}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        params = {"fieldManager": self._kind.manager, "force": "true"}
        await self._client.patch(f"{NODES}/{node.name}", body, APPLY_PATCH, params)

    async def _remove(self, node: Node) -> None:
        """All of the set, also where another field manager wrote it."""
        gone = dict.fromkeys((*self._kind.keys, self._kind.measured_at))
        body = {"metadata": {"uid": node.uid, "annotations": gone}}
        await self._client.patch(f"{NODES}/{node.name}", body, MERGE_PATCH, {"fieldManager": self._kind.manager})
