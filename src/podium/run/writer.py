"""Makes the engine's writes through the API server: bindings, evictions, volumes.

A binding whose answer never came may have happened. To undo it in memory then would free room that is taken, so it is
asked again, to the same node, until there is an answer: the API server refuses a second binding of a pod, and what the
pod says then is the truth. So it is after an internal error of the server, which may have come too late to stop the
binding. A pod stays placed in memory all that while. Where the watch shows first what became of it, nothing is asked.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from podium.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiError, Client, ClientError, Unreachable
from podium.framework import Nomination, Status
from podium.framework.clock import Clock
from podium.framework.handle import Effect, Preemptor
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from podium.kube.devices import Allocation
from podium.kube.meta import format_time
from podium.kube.pod import ExtendedResourceRequestMapping
from podium.run.claim_writer import ClaimWriter
from podium.run.pod_status import KnownPods, PodStatuses, worth_repeating
from podium.serving.event_recorder import EventRecorder, kind_of, preempted, scheduler_of

RETRY_PAUSES: Final = (0.01, 0.05, 0.25)
"""Seconds before a binding is tried again."""
RETRIED: Final = (500, 503)
"""Answers after which it is."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between attempts to learn what became of a binding."""


class _Meta(msgspec.Struct):
    name: str
    namespace: str
    uid: str


class _Target(msgspec.Struct):
    name: str
    kind: str = "Node"


class _Binding(msgspec.Struct, rename="camel"):
    metadata: _Meta
    target: _Target
    kind: str = "Binding"
    api_version: str = "v1"


class LiveWriter:
    """The framework's Writer over a client. `spawn` starts a task that outlives the call."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rng: random.Random,
        pods: KnownPods,
        statuses: PodStatuses,
        recorder: EventRecorder,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        claims: ClaimWriter,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._statuses = statuses
        self._recorder = recorder
        self._pods = pods
        self._spawn = spawn
        self._claims = claims
        self.binding = 0
        """How many bindings are under way."""
        self.bind_retries = 0
        """How often a binding is tried again that the API server could not carry out."""

    # Bindings

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"
        body = msgspec.json.encode(_Binding(_Meta(pod.name, pod.namespace, pod.uid), _Target(node_name)))
        self.binding += 1
        try:
            await self._statuses.withdraw(pod.uid)
            pause = FIRST_PAUSE
            doubtful = False
            retries = iter(RETRY_PAUSES[: self.bind_retries])
            while True:
                known = self._pods.latest(pod)
                if known is not None and known.node_name:  # the watch was quicker than the answer
                    return None if known.node_name == node_name else Status.error(_taken(known))
                try:
                    await self._client.post(path, body)
                    return None
                except Unreachable as error:
                    doubtful = doubtful or error.sent
                    if not doubtful:
                        if not await self._wait_before_retry(retries):
                            return self._unbound(pod, error)
                        continue
                except ApiError as error:
                    if error.conflict or doubtful or error.status >= 500:  # an error may hide that it was carried out
                        retryable = error.status in RETRIED and not doubtful
                        if retryable and await self._wait_before_retry(retries):
                            continue
                        return await self._where(pod, node_name, error)
                    return self._unbound(pod, error)
                except ClientError as error:
                    return self._unbound(pod, error)
                await asyncio.sleep(pause * (0.5 + self._rng.random()))
                pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            self.binding -= 1

    async def _wait_before_retry(self, pauses: Iterator[float]) -> bool:
        """Wait, and say whether to try again. A binding that was carried out after all is then refused as a second."""
        pause = next(pauses, None)
        if pause is not None:
            await asyncio.sleep(pause * (1 + 0.1 * self._rng.random()))
        return pause is not None

    async def _where(self, pod: Pod, node_name: str, refusal: ApiError) -> Status | None:
        """Whether the pod is on the node after all, as the API server tells it.

        What it tells may be newer than what the watch has brought: a pod that another leader bound is then known to be
        where it is, before it is tried again or reported as unscheduled.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                answer = await self._client.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
                found = self._pods.learn(answer)
                bound = found is not None and found.uid == pod.uid and found.node_name == node_name
                return None if bound else self._unbound(pod, refusal)
            except ApiError as error:
                if not worth_repeating(error):
                    return Status.error(refusal.message)
            except Unreachable:
                pass
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _unbound(self, pod: Pod, error: ClientError) -> Status:
        if not isinstance(error, ApiError):
            self._statuses.failures.failed("binding", pod.key, error)
            return Status.error(str(error))
        if not (error.conflict or error.not_found):  # bound by another scheduler, or deleted: the watch shows it
            self._statuses.failures.failed("binding", pod.key, error)
        return Status.error(error.message)

    # Evictions and nominations

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self._spawn(self._evict_all(victims, preemptor, node_name, done))

    async def _evict_all(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        """All but the last at once, then the last: its going is what lets the preemptor be tried again.

        A failure is reported after a moment, because the preemptor is then tried again at once.
        """
        *others, last = victims
        problems = await asyncio.gather(*(self._evict(each, preemptor, node_name) for each in others))
        if not any(problems):
            problems = [await self._evict(last, preemptor, node_name)]
        failure = next((problem for problem in problems if problem), None)
        if failure is not None:
            await asyncio.sleep(FIRST_PAUSE)
        done(failure)

    async def _evict(self, victim: Pod, preemptor: Preemptor, node_name: str) -> str | None:
        """Say in its status why the pod goes, and delete it; what went wrong, if anything did."""
        path = f"/api/v1/namespaces/{victim.namespace}/pods/{victim.name}"
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler_of(preemptor)}: preempting to accommodate a higher priority {kind_of(preemptor)}",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        if victim.metadata.generation:
            condition["observedGeneration"] = victim.metadata.generation  # type: ignore[assignment]
        patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        deleting = False
        try:
            await self._client.patch(f"{path}/status", patch, STRATEGIC_MERGE_PATCH)
            deleting = True
            await self._client.delete(path, {"preconditions": {"uid": victim.uid}})
        except ApiError as error:
            if error.not_found or (deleting and error.conflict):  # gone already, or another pod of that name
                return None
            return f"preempting pod {victim.key}: {error.message}"
        except ClientError as error:
            return f"preempting pod {victim.key}: {error}"
        self._recorder.record(*preempted(victim, preemptor, node_name))
        return None

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        self._recorder.record(*preempted(victim, preemptor, node_name, in_memory=True))

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Written when there is time for it, and not at all if the pod is bound by then."""
        self._statuses.write(pod, nomination=Nomination(node_name))

    def clear_nomination(self, pod: Pod) -> None:
        self._statuses.write(pod, nomination=Nomination(""))

    # What plugins prepare before a binding

    async def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> Status | None:
        patch = {"metadata": {"uid": pod.uid, "annotations": annotations}}
        return await self._patched(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", patch)

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> Effect:
        return self._write_volumes(list(volumes), list(claims))

    async def _write_volumes(
        self, volumes: Sequence[PersistentVolume], claims: Sequence[PersistentVolumeClaim]
    ) -> Status | None:
        for volume in volumes:
            meta = {
                "uid": volume.uid,
                "resourceVersion": volume.metadata.resource_version,
                "annotations": volume.annotations,
            }
            patch = {"metadata": meta, "spec": {"claimRef": volume.spec.claim_ref}}
            problem = await self._patched(f"/api/v1/persistentvolumes/{volume.name}", patch)
            if problem is not None:
                return problem
        for claim in claims:
            meta = {
                "uid": claim.uid,
                "resourceVersion": claim.metadata.resource_version,
                "annotations": claim.annotations,
            }
            path = f"/api/v1/namespaces/{claim.namespace}/persistentvolumeclaims/{claim.name}"
            problem = await self._patched(path, {"metadata": meta})
            if problem is not None:
                return problem
        return None

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> Effect:
        return self._claims.reserve(claim, allocation, pod)

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> Effect:
        return self._claims.create(claim, allocation, pod, mappings)

    def delete_claim(self, claim: ResourceClaim) -> None:
        self._spawn(self._claims.delete(claim))

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None:
        """Let go of a claim, unless the pod turned out to be bound by another leader: then it uses the claim."""
        known = self._pods.latest(pod)
        if known is not None and known.node_name:
            return
        self._spawn(self._claims.release(claim, pod))

    def deallocate_claim(self, claim: ResourceClaim) -> None:
        self._spawn(self._claims.deallocate(claim))

    async def _patched(self, path: str, patch: Any) -> Status | None:
        try:
            await self._client.patch(path, patch, MERGE_PATCH)
        except ApiError as error:
            return Status.error(error.message)
        except ClientError as error:
            return Status.error(str(error))
        return None


def _taken(pod: Pod) -> str:
    return f'pod {pod.name} is already assigned to node "{pod.node_name}"'
