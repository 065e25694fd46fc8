"""Reads and writes the Lease object of an election (coordination.k8s.io/v1) as client-go's leaderelection does.

Metadata is kept as the server sent it and goes back with each update, so that labels stay and its resource version
makes the server refuse the update of one who has not seen the newest state. The spec is replaced each time.
"""

from __future__ import annotations

import math
from typing import Any, Final
from urllib.parse import quote

import msgspec

from podium.client import ApiError, Client
from podium.kube.meta import Model, ObjectReference

API_VERSION: Final = "coordination.k8s.io/v1"


class LeaseSpec(Model, frozen=True, kw_only=True):
    """Who leads, since when, for how long after the last renewal that was seen."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None

    @property
    def holder(self) -> str:
        return self.holder_identity or ""


class Lease(Model, frozen=True, kw_only=True):
    api_version: str
    kind: str
    metadata: dict[str, Any]
    spec: LeaseSpec = LeaseSpec()


_decode: Final = msgspec.json.Decoder(Lease).decode


def whole_seconds(duration: float) -> int:
    """A lease duration as it is written: peers must never wait for less than was meant, so it is rounded up."""
    return max(1, math.ceil(duration))


class LeaseLock:
    """One Lease on the server; what was last read or written of it is `lease`."""

    def __init__(self, client: Client, namespace: str, name: str, *, timeout: float) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._leases = f"/apis/{API_VERSION}/namespaces/{quote(namespace)}/leases"
        self._timeout = timeout
        self.lease: Lease | None = None

    @property
    def reference(self) -> ObjectReference:
        """For events about it."""
        metadata = {} if self.lease is None else self.lease.metadata
        return ObjectReference(
            api_version=API_VERSION,
            kind="Lease",
            namespace=self._namespace,
            name=self._name,
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
        )

    async def read(self) -> LeaseSpec | None:
        """None if there is no such Lease."""
        try:
            answer = await self._client.get(f"{self._leases}/{quote(self._name)}", timeout=self._timeout)
        except ApiError as error:
            if error.not_found:
                return None
            raise
        self.lease = _decode(answer)
        return self.lease.spec

    async def create(self, spec: LeaseSpec) -> None:
        metadata = {"name": self._name, "namespace": self._namespace}
        lease = Lease(api_version=API_VERSION, kind="Lease", metadata=metadata, spec=spec)
        self.lease = _decode(await self._client.post(self._leases, lease, timeout=self._timeout))

    async def update(self, spec: LeaseSpec) -> None:
        """Replaces the spec of what was last seen; ApiError with `conflict` if the server has something newer."""
        assert self.lease is not None, "read or create first"
        lease = msgspec.structs.replace(self.lease, spec=spec)
        path = f"{self._leases}/{quote(self._name)}"
        self.lease = _decode(await self._client.put(path, lease, timeout=self._timeout))
