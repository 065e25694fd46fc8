"""Records events of controllers and kubelets so that a storm of them stays small, as client-go does it.

The same words about the same object count up one event. More than 10 different messages for one reason within 10
minutes become one event, "(combined from similar events): …". And an object may have 25 writes at once and then one
every 5 minutes from each component; what is over is dropped.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.framework.clock import Clock
from podium.kube.meta import format_time
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kinds import built_in

SIMILAR_ALLOWED = 10
SIMILAR_SECONDS = 600.0
BURST = 25
REFILL_SECONDS = 300.0
MEMORY_LIMIT = 4096


class _Bucket(msgspec.Struct):
    tokens: float
    at: float


class _Similar(msgspec.Struct):
    messages: dict[str, None]
    at: float


class _Written(msgspec.Struct):
    namespace: str
    name: str
    count: int


class ComponentEventRecorder:
    """Writes events through the API in the name of one component."""

    def __init__(self, api: EmbeddedApi, clock: Clock, component: str) -> None:
        self._api = api
        self._clock = clock
        self._component = component
        self._kind = built_in("v1", "Event")
        self._buckets: dict[str, _Bucket] = {}
        self._similar: dict[tuple[str, ...], _Similar] = {}
        self._written: dict[tuple[str, ...], _Written] = {}

    def normal(self, about: dict[str, Any], reason: str, message: str) -> None:
        self.event(about, "Normal", reason, message)

    def warning(self, about: dict[str, Any], reason: str, message: str) -> None:
        self.event(about, "Warning", reason, message)

    def event(self, about: dict[str, Any], type_: str, reason: str, message: str) -> None:
        """`about` needs apiVersion, kind, and in its metadata name, namespace, uid and resourceVersion."""
        now = self._clock.now()
        meta = about["metadata"]
        if not self._allowed(meta.get("uid", ""), now):
            return
        subject = (meta.get("uid", ""), type_, reason)
        message, key = self._aggregated(subject, message, now)
        written = self._written.get(key)
        if written is None or not self._count_up(written, message, now):
            self._write(about, type_, reason, message, key, now)

    def _allowed(self, uid: str, now: float) -> bool:
        bucket = self._buckets.get(uid)
        if bucket is None:
            bucket = self._buckets[uid] = _Bucket(BURST, now)
            _forget_oldest(self._buckets)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.at) / REFILL_SECONDS)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _aggregated(self, subject: tuple[str, ...], message: str, now: float) -> tuple[str, tuple[str, ...]]:
        similar = self._similar.get(subject)
        if similar is None or now - similar.at > SIMILAR_SECONDS:
            similar = self._similar[subject] = _Similar({}, now)
            _forget_oldest(self._similar)
        similar.messages[message] = None
        similar.at = now
        if len(similar.messages) < SIMILAR_ALLOWED:
            return message, (*subject, message)
        del similar.messages[next(iter(similar.messages))]
        return f"(combined from similar events): {message}", subject

    def _count_up(self, written: _Written, message: str, now: float) -> bool:
        stored = self._api.store.get(self._kind, written.namespace, written.name)
        if stored is None:
            return False
        event = stored.decode()
        written.count += 1
        event |= {"count": written.count, "lastTimestamp": format_time(now), "message": message}
        return self._try(lambda: self._api.update(self._kind, event))

    def _write(
        self, about: dict[str, Any], type_: str, reason: str, message: str, key: tuple[str, ...], now: float
    ) -> None:
        meta = about["metadata"]
        namespace = meta.get("namespace") or "default"
        reference = {"kind": about["kind"], "namespace": meta.get("namespace"), "name": meta["name"]}
        reference |= {"uid": meta.get("uid"), "apiVersion": about["apiVersion"]}
        reference |= {"resourceVersion": meta.get("resourceVersion")}
        name = f"{meta['name']}.{int(now * 1e9):x}"
        while self._api.store.get(self._kind, namespace, name) is not None:
            name = f"{meta['name']}.{int(name.rpartition('.')[2], 16) + 1:x}"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {field: value for field, value in reference.items() if value},
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": format_time(now),
            "lastTimestamp": format_time(now),
            "count": 1,
            "type": type_,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        if self._try(lambda: self._api.create(self._kind, event, namespace=namespace)):
            self._written[key] = _Written(namespace, name, 1)
            _forget_oldest(self._written)

    def _try(self, write: Any) -> bool:
        """Events are best effort: their writer goes on in any case."""
        try:
            write()
        except StatusError:
            return False
        return True


def _forget_oldest(memory: dict[Any, Any]) -> None:
    if len(memory) > MEMORY_LIMIT:
        del memory[next(iter(memory))]
