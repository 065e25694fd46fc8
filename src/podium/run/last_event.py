"""Finds out from a pod's events what its scheduler said of it last: that it fits nowhere, or that a plugin holds it.

A pod that waits at Permit looks like any other without a node: what holds it is known to its scheduler alone, which
says so in an event. The last event of the pod counts: a rejection or a failure comes as another one.
"""

from __future__ import annotations

import msgspec

from podium.client import ApiError, Client, ClientError
from podium.kube import Pod
from podium.kube.bounds import UNDECODABLE
from podium.serving.event_recorder import FAILED_SCHEDULING, WAITING_ON_PERMIT


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class PodEvent(msgspec.Struct, rename="camel"):
    """What was said of a pod."""

    reason: str = ""
    message: str = ""
    event_time: str | None = None
    last_timestamp: str | None = None
    series: _Series | None = None

    @property
    def time(self) -> str:
        """Times of one API server compare as text, to the second; equal ones keep the server's order."""
        last = None if self.series is None else self.series.last_observed_time
        return (last or self.event_time or self.last_timestamp or "")[:19]

    @property
    def held(self) -> str | None:
        """What holds the pod at Permit, if that is what was said."""
        return self.message if self.reason == WAITING_ON_PERMIT else None

    @property
    def failed(self) -> str | None:
        """Why the pod got no node, if that is what was said."""
        return self.message if self.reason == FAILED_SCHEDULING else None


class _Events(msgspec.Struct):
    items: list[PodEvent] = []


async def last_event(client: Client, pod: Pod) -> PodEvent | None:
    """What was said last of a pod that has no node; None where nothing was, or events may not be listed."""
    if pod.node_name or not pod.uid:
        return None
    path = f"/api/v1/namespaces/{pod.namespace}/events?fieldSelector=involvedObject.uid%3D{pod.uid}"
    try:
        events = msgspec.json.decode(await client.get(path), type=_Events).items
    except ApiError as error:
        if error.forbidden or error.not_found:
            return None
        raise
    except UNDECODABLE as error:
        raise ClientError(f"events cannot be read: {error}") from None
    return max(events, key=lambda event: event.time, default=None)
