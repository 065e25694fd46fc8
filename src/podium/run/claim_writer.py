"""Writes resource claims through the API server: what they are given, and which pods use them.

A write names the version it is based on. Where the claim has changed meanwhile, it is read and tried again, up to five
times. One that is not answered is sent again, so that no device is given twice because an answer was lost. What the API
server answers is taken over at once, before the watch brings it: pods that wait for the claim are tried again, and the
claim shows its devices itself.

A claim that was changed by another may mean that another leader placed the pod and the watch has not shown it yet.
So the pod is read too before a write counts as refused: one that is bound is not reported as unscheduled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from msgspec.structs import replace

from podium.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiError, Client, ClientError, Unreachable
from podium.framework import Status
from podium.framework.clock import Clock
from podium.kube import Pod, ResourceClaim
from podium.kube.claim_status import is_reserved_for, reserved
from podium.kube.devices import FINALIZER, Allocation, ClaimConsumer
from podium.kube.pod import ExtendedResourceClaimStatus, ExtendedResourceRequestMapping
from podium.run.pod_status import worth_repeating

TRIES: Final = 5
PAUSE: Final = 0.01
"""Seconds between tries."""
LONGEST_PAUSE: Final = 5.0
"""Seconds between tries of a write that is not answered."""


class _RefusedError(Exception):
    """Why a claim cannot be written."""


class Created(Protocol):
    """Hears how the creation of a claim ended."""

    def __call__(self, *, success: bool) -> None: ...


class ClaimWriter:
    """Writes to claims. `learn` is shown the JSON of a claim that the API server answered with, and gives the claim;
    `learn_pod` the same of a pod."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        learn: Callable[[bytes], ResourceClaim | None],
        learn_pod: Callable[[bytes], Pod | None],
        report: Callable[[str], None],
        created: Created,
    ) -> None:
        self._client = client
        self._clock = clock
        self._learn = learn
        self._learn_pod = learn_pod
        self._report = report
        self._created = created

    async def reserve(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> Status | None:
        """Write that a pod uses a claim, with what it is given where it has nothing yet."""
        try:
            await self._reserve_in_tries(claim, allocation, pod)
        except _RefusedError as error:
            await self._look_at(pod)
            return Status.error(str(error))
        except ClientError as error:
            return Status.error(str(error))
        return None

    async def _reserve_in_tries(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> None:
        for number in range(TRIES):
            try:
                await self._reserve(claim, allocation, pod)
                return
            except ApiError as error:
                hidden = error.status >= 500  # an error may hide that it was carried out
                if not hidden and (not error.conflict or number == TRIES - 1):
                    raise _refusal(claim, allocation, error) from None
                await asyncio.sleep(PAUSE)
                claim = await self._read(claim)
                if _has_what_was_written(claim, allocation, pod):
                    return
                if hidden:
                    raise _refusal(claim, allocation, error) from None

    async def _reserve(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> None:
        if claim.metadata.deletion_timestamp is not None:
            raise _RefusedError(f"claim {claim.key} got deleted in the meantime")
        if allocation is not None and claim.status.allocation is not None:
            raise _RefusedError(f"claim {claim.key} got allocated elsewhere in the meantime")
        if allocation is None and claim.status.allocation is None:
            raise _RefusedError(f"claim {claim.key} got deallocated elsewhere in the meantime")
        if allocation is not None and FINALIZER not in claim.metadata.finalizers:
            claim = await self._protect(claim)
        latest = reserved(claim, allocation, pod, self._clock.now())
        status = {"allocation": latest.status.allocation, "reservedFor": latest.status.reserved_for}
        await self._patch_until_answered(claim, {"metadata": _version(claim), "status": status}, "/status")

    async def _protect(self, claim: ResourceClaim) -> ResourceClaim:
        finalizers = [*claim.metadata.finalizers, FINALIZER]
        try:
            answer = await self._patch_until_answered(
                claim, {"metadata": {**_version(claim), "finalizers": finalizers}}
            )
        except ApiError as error:
            if error.conflict:
                raise
            raise _RefusedError(f"add finalizer to claim {claim.key}: {error.message}") from None
        metadata = (answer or claim).metadata
        return replace(claim, metadata=metadata)

    async def create(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> Status | None:
        """Create the claim for a pod's extended resources, give it its devices, and note it in the pod's status."""
        metadata = replace(claim.metadata, name="", uid="")
        body = {"metadata": metadata, "spec": claim.spec}
        try:
            made = self._learn(await self._client.post(_collection(claim), body))
            self._created(success=True)
        except ClientError as error:
            self._created(success=False)
            return Status.error(f"create claim for extended resources {claim.namespace}/: {_message(error)}")
        if made is None:
            return Status.error(f"create claim for extended resources {claim.namespace}/: no claim in the answer")
        status = await self.reserve(made, allocation, pod)
        if status is not None:
            return status
        noted = ExtendedResourceClaimStatus(resource_claim_name=made.name, request_mappings=tuple(mappings))
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": noted}}
        try:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
            await self._client.patch(path, patch, STRATEGIC_MERGE_PATCH)
        except ClientError as error:
            return Status.error(f"update pod {pod.key} ExtendedResourceClaimStatus: {_message(error)}")
        return None

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim that was created for extended resources: without its finalizer it goes at once."""
        try:
            for number in range(TRIES):
                finalizers = [each for each in claim.metadata.finalizers if each != FINALIZER]
                try:
                    await self._patch(claim, {"metadata": {**_version(claim), "finalizers": finalizers}})
                    break
                except ApiError as error:
                    if not error.conflict or number == TRIES - 1:
                        raise
                await asyncio.sleep(PAUSE)
                claim = await self._read(claim)
            await self._client.delete(_path(claim), {"preconditions": {"uid": claim.uid}})
        except (ClientError, _RefusedError) as error:
            if not (isinstance(error, ApiError) and error.not_found):
                self._report(f"deleting claim {claim.key}: {error}")

    async def release(self, claim: ResourceClaim, pod: Pod) -> None:
        """Take back that a pod uses a claim."""
        users = [{"$patch": "delete", "uid": pod.uid}]
        patch = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": users}}
        await self._attempt(claim, patch, f"releasing claim {claim.key}", STRATEGIC_MERGE_PATCH)

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Take back what a claim was given, unless a pod that uses it turns out to be bound."""
        for user in claim.status.reserved_for:
            if await self._may_run(claim.namespace, user):
                return
        nothing = {"allocation": None, "reservedFor": None, "devices": None}
        patch = {"metadata": _version(claim), "status": nothing}
        await self._attempt(claim, patch, f"deallocating claim {claim.key}", MERGE_PATCH)

    async def _attempt(self, claim: ResourceClaim, patch: Any, doing: str, kind: str) -> None:
        try:
            await self._patch(claim, patch, "/status", kind)
        except ClientError as error:
            if not (isinstance(error, ApiError) and (error.not_found or error.conflict)):
                self._report(f"{doing}: {error}")

    async def _patch(
        self, claim: ResourceClaim, patch: Any, subresource: str = "", kind: str = MERGE_PATCH
    ) -> ResourceClaim | None:
        return self._learn(await self._client.patch(f"{_path(claim)}{subresource}", patch, kind))

    async def _patch_until_answered(
        self, claim: ResourceClaim, patch: Any, subresource: str = ""
    ) -> ResourceClaim | None:
        """A write without an answer may have been carried out, or may be later: it is sent again until it is answered.

        It names the version that it is based on, so it is carried out once; what was carried out shows as a conflict.
        """
        pause, doubtful = PAUSE, False
        while True:
            try:
                return await self._patch(claim, patch, subresource)
            except Unreachable as error:
                doubtful = doubtful or error.sent
                if not doubtful or error.lasting:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it is now."""
        try:
            return self._learn(await self._get(_path(claim))) or claim
        except ApiError as error:
            message = f"get updated claim {claim.key} after conflict: {error.message}"
            raise _RefusedError(message) from None

    async def _look_at(self, pod: Pod) -> None:
        """Take over where a pod is."""
        with suppress(ClientError):  # it is gone, or the watch will say more
            self._learn_pod(await self._get(_path_of_pod(pod.namespace, pod.name)))

    async def _may_run(self, namespace: str, user: ClaimConsumer) -> bool:
        """Whether the pod that uses a claim is bound, as far as the API server says so."""
        try:
            found = self._learn_pod(await self._get(_path_of_pod(namespace, user.name)))
        except ApiError as error:
            return not error.not_found
        except ClientError:
            return True
        return found is None or (found.uid == user.uid and bool(found.node_name))

    async def _get(self, path: str) -> bytes:
        """An object as it is now; asked until there is an answer."""
        pause = PAUSE
        while True:
            try:
                return await self._client.get(path)
            except ApiError as error:
                if not worth_repeating(error):
                    raise
            except Unreachable as error:
                if error.lasting:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def _path_of_pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _refusal(claim: ResourceClaim, allocation: Allocation | None, error: ApiError) -> _RefusedError:
    what = "allocation and reservation" if allocation else "reservation"
    return _RefusedError(f"add {what} to claim {claim.key}: {error.message}")


def _has_what_was_written(claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> bool:
    """Whether a write that seemed to be refused was carried out."""
    given = claim.status.allocation
    if given is None or not is_reserved_for(claim, pod):
        return False
    return allocation is None or _devices(given) == _devices(allocation)


def _devices(allocation: Allocation) -> list[tuple[str, str, str, str]]:
    return [(each.request, each.driver, each.pool, each.device) for each in allocation.devices.results]


def _collection(claim: ResourceClaim) -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{claim.namespace}/resourceclaims"


def _path(claim: ResourceClaim) -> str:
    return f"{_collection(claim)}/{claim.name}"


def _message(error: ClientError) -> str:
    return error.message if isinstance(error, ApiError) else str(error)


def _version(claim: ResourceClaim) -> dict[str, str]:
    return {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}
