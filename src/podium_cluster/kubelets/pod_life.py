"""Leads each pod through its life on its node, from the binding to the end.

Accepted or rejected; after the start-up time running; after its duration ended, or, as its restart policy says, started
again after 10 s, 20 s, 40 s … up to 5 minutes; deleted when its containers have had the time they need, within the
grace period. A pod on a stopped node takes its next step when the node is back.

A kubelet starts only pods that their claims name, and says why a pod's devices are not ready for it on its node.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from podium.framework.clock import Clock
from podium.kube.claim_status import ClaimNotReadyError, claim_name, is_reserved_for
from podium.kube.decode import decode_json
from podium.kube.devices import ResourceClaim
from podium.kube.json_object import JsonObject
from podium.kube.meta import format_time
from podium.kube.pod import Pod
from podium.kube.requests import fit_requests
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError, StorageError, not_found
from podium_cluster.apiserver.event_recorder import ComponentEventRecorder
from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.write_context import WriteOptions
from podium_cluster.apiserver.writes.update import update
from podium_cluster.kubelets import pod_status
from podium_cluster.kubelets.declared import declared
from podium_cluster.kubelets.machines import Key, Machine, PodRun, Rejection, drawn_usage, host_ports, rejection
from podium_cluster.kubelets.shapes import address, pod_prefix
from podium_cluster.kubelets.timeline import Timeline

FIRST_BACKOFF, LAST_BACKOFF = 10.0, 300.0
FORGIVEN_AFTER = 600.0
"""A container that has run for this long starts again without delay."""
KILLED, TERMINATED = 137, 143
CLAIMS_CHECK = 2.0
"""Seconds after which a pod whose devices were not ready is looked at again."""
CLAIM = built_in("resource.k8s.io/v1", "ResourceClaim")


class PodLives:
    def __init__(self, api: EmbeddedApi, clock: Clock, rng: random.Random, timeline: Timeline, speed: float) -> None:
        self._api = api
        self._clock = clock
        self._rng = rng
        self._timeline = timeline
        self._speed = speed
        self._recorder = ComponentEventRecorder(api, clock, "kubelet")

    def take(self, machine: Machine, key: Key, pod: Pod) -> None:
        """A pod that has been bound to the node, or that ran on it in an earlier life of this process."""
        owner = pod.metadata.controller
        run = PodRun(
            key,
            pod.uid,
            declared(pod.annotations, of_job=owner is not None and owner.kind == "Job"),
            fit_requests(pod),
            pod.spec.restart_policy,
            tuple(container.name for container in pod.spec.containers),
            host_ports(pod),
            pod.spec.host_network,
            pod.status.pod_ip,
            has_claims(pod),
        )
        was_running = pod.status.phase == "Running"
        refused = None if was_running or pod.terminating else self._refusal(machine, pod)
        machine.add(run)
        if refused is not None:
            self._plan(machine, run, 0.0, lambda machine, run: self._reject(machine, run, refused))
        elif pod.terminating:
            self.leave(machine, run, pod.metadata.deletion_grace_period_seconds or 0)
        else:
            if pod.spec.active_deadline_seconds:
                self._plan_deadline(machine, run, float(pod.spec.active_deadline_seconds))
            run.restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
            self._plan(machine, run, 0.0, self._runs if was_running else self._accept)

    def leave(self, machine: Machine, run: PodRun, grace_seconds: int) -> None:
        """It is being deleted; asked again with less grace, it hurries."""
        run.leaving = True
        run.serial += 1
        took = min(float(grace_seconds), run.declared.shutdown.draw(self._rng) / self._speed)
        self._plan(machine, run, took, self._gone)

    def resume(self, machine: Machine) -> None:
        """The node is back: it tells of its pods, and what fell due meanwhile happens."""
        for run in list(machine.runs.values()):
            if run.usage is not None and not run.leaving:
                self._write(machine, run, pod_status.back_online)
        due, machine.deferred = machine.deferred, []
        for action in due:
            self._timeline.after(0.0, action)

    def _refusal(self, machine: Machine, pod: Pod) -> Rejection | None:
        used = {**machine.used, "pods": len(machine.runs)}
        taken = [port for run in machine.runs.values() for port in run.ports] if host_ports(pod) else []
        return rejection(pod, machine.node, used, machine.capacity, taken)

    def _reject(self, machine: Machine, run: PodRun, refused: Rejection) -> None:
        pod = self._object(run)
        if pod is not None:
            self._recorder.warning(pod, refused.reason, refused.message)
        self._write(machine, run, lambda pod, time: pod_status.rejected(pod, time, refused.reason, refused.message))
        machine.remove(run)

    def _accept(self, machine: Machine, run: PodRun) -> None:
        pod = self._object(run) if run.declared.complaints else None
        for complaint in run.declared.complaints if pod is not None else ():
            self._recorder.warning(pod or {}, "InvalidAnnotation", complaint)
        if run.has_claims:
            self._prepare_devices(machine, run)
        else:
            self._start_up(machine, run)

    def _prepare_devices(self, machine: Machine, run: PodRun) -> None:
        """The pod waits until its claims have devices, for it."""
        pod = self._object(run)
        stored = self._api.store.get(POD, *run.key)
        problem = problem_of_claims(self._api, decode_json(Pod, stored.raw)) if stored is not None else ""
        if pod is None or not problem:
            self._start_up(machine, run)
            return
        why = f"Failed to prepare dynamic resources: {problem}"
        self._recorder.warning(pod, "FailedPrepareDynamicResources", why)
        if "startTime" not in pod["status"]:
            host = address(machine.index)
            self._write(machine, run, lambda pod, time: pod_status.waiting(pod, time, host))
        self._plan(machine, run, CLAIMS_CHECK, self._prepare_devices)

    def _start_up(self, machine: Machine, run: PodRun) -> None:
        startup = run.declared.startup.draw(self._rng) / self._speed
        if startup > 0:
            host = address(machine.index)
            self._write(machine, run, lambda pod, time: pod_status.waiting(pod, time, host))
        self._plan(machine, run, startup, self._begin)

    def _begin(self, machine: Machine, run: PodRun) -> None:
        host = address(machine.index)
        if run.host_network:
            run.pod_ip = host
        elif not run.pod_ip:
            run.pod_ip = f"{pod_prefix(machine.index)}.{machine.next_address()}"
        if self._write(machine, run, lambda pod, time: pod_status.running(pod, time, host, run.pod_ip)):
            self._runs(machine, run)

    def _runs(self, machine: Machine, run: PodRun) -> None:
        run.started_at = self._clock.now()
        if run.usage is None:
            cpu, memory = run.requests.get("cpu", 0) / 1000, float(run.requests.get("memory", 0))
            run.usage = drawn_usage(run.declared.cpu, run.declared.memory, cpu, memory, self._rng)
        if run.declared.duration is not None:
            seconds = run.declared.duration.draw(self._rng) / self._speed
            self._plan(machine, run, seconds, self._end)

    def _end(self, machine: Machine, run: PodRun) -> None:
        code = run.declared.draw_exit_code(self._rng)
        if run.restart_policy == "Never" or (run.restart_policy == "OnFailure" and code == 0):
            if self._write(machine, run, lambda pod, time: pod_status.ended(pod, time, code)):
                machine.remove(run)
            return
        if self._clock.now() - run.started_at > FORGIVEN_AFTER:
            run.restarts = 0
        wait = min(LAST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(run.restarts, 10))
        if self._write(machine, run, lambda pod, time: pod_status.crashed(pod, time, code, wait)):
            run.restarts += 1
            self._plan(machine, run, wait / self._speed, self._begin)

    def _plan_deadline(self, machine: Machine, run: PodRun, seconds: float) -> None:
        def due() -> None:
            if machine.runs.get(run.key) is run and not run.leaving:
                self._write(machine, run, pod_status.overdue)
                machine.remove(run)

        self._timeline.after(seconds / self._speed, due)

    def _gone(self, machine: Machine, run: PodRun) -> None:
        pod = self._object(run)
        if pod is not None and pod["metadata"].get("finalizers"):  # their owners want to know how it ended
            code = TERMINATED if run.usage is not None else KILLED
            self._write(machine, run, lambda pod, time: pod_status.ended(pod, time, code))
        try:
            self._api.delete(POD, *run.key, grace_seconds=0, uid=run.uid)
        except StorageError:
            raise
        except StatusError:
            pass  # it is gone already
        machine.remove(run)

    def _plan(self, machine: Machine, run: PodRun, seconds: float, step: Callable[[Machine, PodRun], None]) -> None:
        """Takes the step after so long, unless another has been planned by then."""
        serial = run.serial

        def due() -> None:
            if run.serial != serial or machine.runs.get(run.key) is not run:
                return
            if machine.stopped_at is not None:
                machine.deferred.append(due)
            else:
                step(machine, run)

        self._timeline.after(seconds, due)

    def _object(self, run: PodRun) -> JsonObject | None:
        stored = self._api.store.get(POD, *run.key)
        return stored.decode() if stored is not None and stored.uid == run.uid else None

    def _write(self, machine: Machine, run: PodRun, change: Callable[[JsonObject, str], JsonObject]) -> bool:
        """Writes the pod's new status; False when the pod is gone."""
        pod = self._object(run)
        if pod is None:
            machine.remove(run)
            return False
        pod["status"] = change(pod, format_time(self._clock.now()))
        # Not through the API object, which copies: this pod is not shared.
        update(self._api.context, POD, *run.key, pod, "status", WriteOptions())
        return True


def has_claims(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def problem_of_claims(api: EmbeddedApi, pod: Pod) -> str:
    """What is wrong, in a kubelet's words; empty where the pod may start."""
    try:
        for name, is_made in _names(pod):
            stored = api.store.get(CLAIM, pod.namespace, name)
            if stored is None:
                return f"fetch ResourceClaim {name}: {not_found(CLAIM, name).message}"
            claim = decode_json(ResourceClaim, stored.raw)
            owner = claim.metadata.controller
            if is_made and (owner is None or owner.uid != pod.uid):
                return f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
            if not is_reserved_for(claim, pod):
                return f"pod {pod.name} ({pod.uid}) is not allowed to use ResourceClaim {name} ({claim.uid})"
            if claim.status.allocation is None:
                return f"ResourceClaim {name}: not allocated"
    except ClaimNotReadyError as error:
        return str(error)
    return ""


def _names(pod: Pod) -> Iterator[tuple[str, bool]]:
    """The pod's claims, and whether each was made for it from a template."""
    for entry in pod.spec.resource_claims:
        name = claim_name(pod, entry)
        if name is not None:
            yield name, entry.resource_claim_name is None
    special = pod.status.extended_resource_claim_status
    if special is not None:
        yield special.resource_claim_name, False
