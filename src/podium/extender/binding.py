"""Writes a binding, when kube-scheduler leaves that to the extender. Nothing else is ever written.

An answer that never came may hide a binding that happened, so the pod is read then: if it is on the node, it was
bound. kube-scheduler, which waits for us, has its own idea of how long; what takes longer is its time-out to report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from podium.client import ApiError, Client, ClientError, Unreachable
from podium.framework import Nomination, Status
from podium.framework.handle import Effect, Preemptor
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from podium.kube.bounds import UNDECODABLE
from podium.kube.devices import Allocation
from podium.kube.pod import ExtendedResourceRequestMapping

NO_BIND = "Extender doesn't support Bind: make 'BindVerb' be empty in your ExtenderConfig"
"""The classic refusal, for an extender that watches no cluster and so cannot bind in it."""
TIMEOUT = 10.0


class BindingWriter:
    """The engine's writer and listener in an extender."""

    def __init__(self, client: Client | None) -> None:
        self._client = client

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        if self._client is None:
            return Status.error(NO_BIND)
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        try:
            await self._client.post(f"{path}/binding", binding, timeout=TIMEOUT)
        except Unreachable as error:
            return await self._unless_bound(path, pod, node_name, error) if error.sent else Status.error(str(error))
        except ApiError as error:
            if error.conflict or error.status >= 500:
                return await self._unless_bound(path, pod, node_name, error)
            return Status.error(str(error))
        except ClientError as error:
            return Status.error(str(error))
        return None

    async def _unless_bound(self, path: str, pod: Pod, node_name: str, error: ClientError) -> Status | None:
        assert self._client is not None
        try:
            found = msgspec.json.decode(await self._client.get(path, timeout=TIMEOUT), type=Pod)
        except (ClientError, *UNDECODABLE):
            return Status.error(str(error))
        return None if found.uid == pod.uid and found.node_name == node_name else Status.error(str(error))

    # What the engine of a scheduler would also write or report

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        done("an extender evicts no pods")

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None: ...

    def nominate(self, pod: Pod, node_name: str) -> None: ...

    def clear_nomination(self, pod: Pod) -> None: ...

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> Effect:
        return Status.error("an extender writes no annotations")

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> Effect:
        return Status.error("an extender binds no volumes")

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> Effect:
        return Status.error("an extender gives claims no devices")

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> Effect:
        return Status.error("an extender gives claims no devices")

    def delete_claim(self, claim: ResourceClaim) -> None: ...

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None: ...

    def deallocate_claim(self, claim: ResourceClaim) -> None: ...

    def scheduled(self, pod: Pod, node_name: str) -> None: ...

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None: ...
