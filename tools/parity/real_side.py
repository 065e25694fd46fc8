"""Has the real kube-scheduler decide the pods of a random cluster, one at a time.

A case is only worth comparing when the cluster given to Podium is the one kube-scheduler saw. So every change made
here is awaited in the scheduler's log before the objects are listed, and a case is thrown away ("disturbed") when
another pod was tried between the listing and the decision.
"""

import re
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

from tools.parity.api_objects import (
    MOVING_KINDS,
    STILL_KINDS,
    Creator,
    begin_deletion,
    clear,
    label_namespaces,
    list_objects,
)
from tools.parity.case import Case, Decision, without_chance
from tools.parity.dice import Obj
from tools.parity.gen_cluster import ClusterPlan, PendingPlan, later, standing_objects
from tools.parity.gen_pods import PodPlan
from tools.parity.scheduler_log import (
    BOUND_POD_DELETED,
    BOUND_POD_UPDATED,
    FLAGS,
    NODE_ADDED,
    PENDING_POD_DELETED,
    PENDING_POD_UPDATED,
    POD_BOUND,
    VERBOSITY,
    Attempt,
    SchedulerLog,
    SilentSchedulerError,
)
from tools.parity.volume_controller import complete_binding
from tools.testbed.apiclient import ApiClient, ApiError
from tools.testbed.cluster import ControlPlane

WAIT_GATE = {"name": "example.test/wait"}
QUIET_SECONDS = 0.1
RETRY_SECONDS = 1.0
MOST_KEPT = 3


@dataclass
class Disturbed:
    """A case that cannot be compared, and why."""

    name: str
    why: str


class RealSide:
    """One control plane that many clusters pass through."""

    def __init__(self, plane: ControlPlane, kubernetes: str) -> None:
        self._plane = plane
        self._kubernetes = kubernetes
        self.client = plane.client
        self.creator = Creator(plane.client)
        self.creator.create_many(standing_objects())

    def run(self, plan: ClusterPlan) -> Iterator[Case | Disturbed]:
        """Decide the plan's pods in order."""
        clear(self.client)
        self._create(plan)
        scheduler = self._plane.start_scheduler(plan.config, verbosity=VERBOSITY, flags=FLAGS)
        log = SchedulerLog(scheduler.log_path)
        try:
            yield from _Run(self.client, self.creator, log, plan, self._kubernetes).cases()
        finally:
            log.close()
            scheduler.stop(grace=0.0)
            scheduler.log_path.unlink()

    def _create(self, plan: ClusterPlan) -> None:
        label_namespaces(self.client, plan.namespace_labels)
        self.creator.create_many(plan.objects)
        self.creator.create_many(each.pod for each in plan.bound if not each.owned_claims)
        for each in plan.bound:
            if each.owned_claims and (pod := self.creator.create(each.pod)):
                self.creator.create_owned_claims(pod, each.owned_claims)
        for namespace, name in plan.terminating_pods:
            begin_deletion(self.client, namespace, name)
        for claim in plan.terminating_claims:
            metadata = claim["metadata"]
            self.client.delete("v1/PersistentVolumeClaim", metadata["name"], metadata["namespace"])


class _Run:
    """The pods of one cluster meeting one running scheduler."""

    def __init__(
        self, client: ApiClient, creator: Creator, log: SchedulerLog, plan: ClusterPlan, kubernetes: str
    ) -> None:
        self._kubernetes = kubernetes
        self._client = client
        self._creator = creator
        self._log = log
        self._plan = plan
        self._still = list_objects(client, STILL_KINDS)
        self._kept: list[str] = []  # pods that stay pending and may be tried again
        self._start_index: int | None = 0
        self._counted = 0  # attempts that the start index takes account of
        self._nominations: dict[str, str] = {}

    def cases(self) -> Iterator[Case | Disturbed]:
        nodes = [each for each in self._plan.objects if each["kind"] == "Node"]
        self._log.wait(lambda: len(self._log.nodes) == len(nodes), "see all nodes")
        for held in self._plan.reserved:
            self._reserve(held)
        for number, pending in enumerate(self._plan.pending):
            name = f"{self._plan.index}-{number}"
            try:
                yield from self._decide(name, pending)
            except SilentSchedulerError as silent:
                yield Disturbed(name, str(silent))
                return  # what the scheduler is doing is unknown from here on

    def _reserve(self, held: PodPlan) -> None:
        # The queue takes up a nomination when a waiting pod gets it, not when a gated pod arrives with it.
        pod = self._creator.create(held.pod)
        if pod is not None:
            self._log.wait_seen(PENDING_POD_UPDATED, _key(pod))

    def _decide(self, name: str, pending: PendingPlan) -> Iterator[Case | Disturbed]:
        if pending.late_node is not None and self._creator.create(pending.late_node):
            self._log.wait_seen(NODE_ADDED, pending.late_node["metadata"]["name"])
        self._settle()
        before, objects = len(self._log.attempts), self._objects()
        pod, objects = self._submit(pending.plan, objects)
        if pod is None:
            return
        if pod["spec"].get("schedulingGates"):
            self._log.wait(lambda: _key(pod) in self._log.gated, "hold back a gated pod")
            yield self._case(name, objects, pod, Decision("gated"))
            self._remove(pod)
            return
        self._nominations[_key(pod)] = pod["status"].get("nominatedNodeName", "")
        attempt = self._await_decision(pod)
        finished = self._finished(name, objects, pod, attempt, before)
        if isinstance(finished, Case) and attempt.outcome == "bound":
            self._note_devices(finished.decision, pod)
        yield finished
        if attempt.outcome == "bound":
            self._start(pod, attempt.node, pending.start_time)
            return
        self._await_condition(pod, attempt)
        if attempt.target and pending.keep and len(self._kept) < MOST_KEPT:
            self._kept.append(_key(pod))
            if pending.finish_preemption:
                yield from self._finish_preemption(name, pod, attempt, pending.start_time)
        else:
            self._remove(pod)

    def _note_devices(self, decision: Decision, pod: Obj) -> None:
        """What the claims of a bound pod have, where its profile gives claims devices."""
        if not _gives_devices(self._plan.config, pod):
            return
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        shown = {each["resourceClaimName"]: each["resourceClaimName"] for each in pod["spec"].get("resourceClaims", [])}
        made = self._client.get("v1/Pod", name, namespace)["status"].get("extendedResourceClaimStatus")
        if made:
            shown[made["resourceClaimName"]] = "<extended-resources>"
        for claim_name, known_as in shown.items():
            claim = self._client.get("resource.k8s.io/v1/ResourceClaim", claim_name, namespace)
            allocation = claim.get("status", {}).get("allocation", {})
            for result in allocation.get("devices", {}).get("results", []):
                place = f"{result['driver']}/{result['pool']}/{result['device']}"
                decision.devices.append(f"{namespace}/{known_as} {result['request']} {place}")
            if not made:
                decision.allocations[f"{namespace}/{claim_name}"] = without_chance(allocation)

    def _finished(self, name: str, objects: list[Obj], pod: Obj, attempt: Attempt, before: int) -> Case | Disturbed:
        if attempt.number != before:
            self._advance()
            return Disturbed(name, "another pod was tried in between")
        case = self._case(name, objects, pod, _decision(attempt, pod, self._plan.config))
        looked_at = self._looked_at(attempt)
        if looked_at not in (None, 0, len(self._log.nodes)) and not _scores_nothing(self._plan.config, pod):
            case.start_index = -1  # nodes picked by name are tried in the order of a Go map
        self._advance()
        return case

    def _case(self, name: str, objects: list[Obj], pod: Obj, decision: Decision) -> Case:
        start = -1 if self._start_index is None else self._start_index
        return Case(name, self._plan.theme, objects, pod, self._plan.config, start, decision, self._kubernetes)

    def _objects(self) -> list[Obj]:
        """All that exists, nodes in the order of the scheduler's cache."""
        moving = list_objects(self._client, MOVING_KINDS)
        nodes = {each["metadata"]["name"]: each for each in moving if each["kind"] == "Node"}
        ordered = [nodes[name] for name in self._log.nodes]
        return [*ordered, *self._still, *(each for each in moving if each["kind"] != "Node")]

    def _submit(self, plan: PodPlan, objects: list[Obj]) -> tuple[Obj | None, list[Obj]]:
        """Create the pod; one that needs more than one request waits behind a gate until it is complete."""
        gated = deepcopy(plan.pod)
        needs_gate = bool(plan.owned_claims or plan.pod.get("status"))
        own_gates = gated["spec"].get("schedulingGates", [])
        if needs_gate:
            gated["spec"]["schedulingGates"] = [*own_gates, WAIT_GATE]
        pod = self._creator.create(gated)
        if pod is None or not needs_gate:
            return pod, objects
        self._creator.create_owned_claims(pod, plan.owned_claims)
        self._log.wait(lambda: _key(pod) in self._log.gated, "hold back a gated pod")
        if plan.owned_claims:
            time.sleep(0.05)  # claims arrive by a watch that leaves no trace in the log
            objects = [each for each in self._objects() if _key(each) != _key(pod) or each["kind"] != "Pod"]
        metadata = pod["metadata"]
        patch = {"spec": {"schedulingGates": own_gates or None}}
        return self._client.patch("v1/Pod", metadata["name"], patch, metadata["namespace"]), objects

    def _await_decision(self, pod: Obj) -> Attempt:
        deadline = time.monotonic() + 20.0
        while time.monotonic() < deadline:
            self._log.read()
            attempt = self._log.latest(_key(pod))
            if attempt is not None and attempt.outcome:
                return attempt
            if attempt is not None and attempt.node:  # chosen, and waiting for its volumes
                time.sleep(0.05)
                complete_binding(self._client, pod, attempt.node)
            time.sleep(0.004)
        raise SilentSchedulerError(f"kube-scheduler did not decide {_key(pod)} within 20 s")

    def _start(self, pod: Obj, node: str, start_time: str | None) -> None:
        """What a kubelet would report, with a start time that no pod of the same node and priority has."""
        others = [each for each in self._client.list("v1/Pod") if each["spec"].get("nodeName") == node]
        priority = pod["spec"].get("priority", 0)
        taken = {
            each["status"].get("startTime")
            for each in others
            if each["spec"].get("priority", 0) == priority and each["metadata"]["name"] != pod["metadata"]["name"]
        }
        while start_time in taken:
            start_time = later(start_time)
        self._log.wait_seen(POD_BOUND, _key(pod))
        status = {"phase": "Running", **({"startTime": start_time} if start_time else {})}
        metadata = pod["metadata"]
        self._client.patch("v1/Pod", metadata["name"], {"status": status}, metadata["namespace"], subresource="status")
        self._log.wait_seen(BOUND_POD_UPDATED, _key(pod))

    def _await_condition(self, pod: Obj, attempt: Attempt) -> None:
        """The failure must have reached the pod, and its victims must be going, before the cluster is listed again."""
        self._log.wait(lambda: not attempt.evictions_pending, "evict all victims")
        for victim in set(attempt.victims) - set(attempt.victims_already_going):
            self._log.wait_seen(BOUND_POD_UPDATED, victim)
        deadline = time.monotonic() + 5.0
        metadata = pod["metadata"]
        while time.monotonic() < deadline:
            self._log.read()
            latest = self._log.latest(_key(pod)) or attempt  # the pod may have been tried again already
            status = self._client.get("v1/Pod", metadata["name"], metadata["namespace"])["status"]
            scheduled = [each for each in status.get("conditions", []) if each["type"] == "PodScheduled"]
            written = bool(scheduled) and scheduled[0].get("message") == latest.message
            if written and (latest is not attempt or status.get("nominatedNodeName", "") == _nomination(attempt, pod)):
                return
            time.sleep(0.01)
        raise SilentSchedulerError(f"the condition of {_key(pod)} is not what the log says: {attempt.message}")

    def _finish_preemption(
        self, name: str, pod: Obj, attempt: Attempt, start_time: str | None
    ) -> Iterator[Case | Disturbed]:
        """Take the victims away one by one; each time the preemptor may be tried again, with its nomination."""
        for number, victim in enumerate(attempt.victims):
            self._settle()
            before = len(self._log.attempts)
            listed = self._objects()
            current = [each for each in listed if each["kind"] == "Pod" and _key(each) == _key(pod)]
            if not current or current[0]["spec"].get("nodeName") or _shares_a_port(victim, listed):
                return
            namespace, victim_name = victim.split("/")
            self._client.delete("v1/Pod", victim_name, namespace)
            self._log.wait_seen(BOUND_POD_DELETED, victim)
            again = self._await_retry(pod, before)
            if again is None:
                continue
            gone = (victim, _key(pod))
            objects = [each for each in listed if each["kind"] != "Pod" or _key(each) not in gone]
            finished = self._finished(f"{name}-retry{number}", objects, current[0], again, before)
            if isinstance(finished, Case) and again.outcome == "bound":
                self._note_devices(finished.decision, pod)
            yield finished
            if again.outcome == "bound":
                self._kept.remove(_key(pod))
                self._start(pod, again.node, start_time)
                return
            self._log.wait(lambda again=again: not again.evictions_pending, "evict all victims")  # type: ignore[misc]

    def _await_retry(self, pod: Obj, before: int) -> Attempt | None:
        deadline = time.monotonic() + RETRY_SECONDS
        while time.monotonic() < deadline:
            self._log.read()
            if any(each.pod == _key(pod) for each in self._log.attempts[before:]):
                return self._await_decision(pod)
            time.sleep(0.005)
        return None

    def _remove(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        try:
            self._client.delete("v1/Pod", metadata["name"], metadata["namespace"])
        except ApiError as error:
            if error.code != 404:
                raise
        self._log.wait_seen(PENDING_POD_DELETED, _key(pod))

    def _settle(self) -> None:
        """Pods that stayed pending may be tried again by what just happened; let that pass."""
        if self._kept:
            self._log.wait_quiet(QUIET_SECONDS)
        self._log.read()
        self._advance()

    def _advance(self) -> None:
        """Move the start index as the scheduler does: by the number of nodes looked at in each attempt."""
        for attempt in self._log.attempts[self._counted :]:
            looked_at = self._looked_at(attempt)
            if self._start_index is None or looked_at is None:
                self._start_index = None
            else:
                self._start_index = (self._start_index + looked_at) % len(self._log.nodes)
            self._nominations[attempt.pod] = attempt.target or self._nominations.get(attempt.pod, "")
        self._counted = len(self._log.attempts)

    def _looked_at(self, attempt: Attempt) -> int | None:
        if attempt.outcome not in ("bound", "unschedulable"):
            return None
        if attempt.outcome == "bound":
            # A nominated node that fits is taken at once, which leaves the start index alone.
            nominated = self._nominations.get(attempt.pod) == attempt.node
            return 0 if nominated and attempt.evaluated == 1 else attempt.evaluated
        reasons = attempt.message.partition("nodes are available: ")[2].partition("preemption: ")[0]
        if not reasons[:1].isdigit():
            return 0  # rejected before any node was looked at
        passed_over = re.search(r"(\d+) node\(s\) didn't satisfy plugin\(s\)", reasons)
        return len(self._log.nodes) - (int(passed_over[1]) if passed_over else 0)


def _decision(attempt: Attempt, pod: Obj, config: Obj) -> Decision:
    decision = Decision(attempt.outcome, message=attempt.message)
    if attempt.outcome == "bound":
        decision.node = attempt.node
        decision.scores, decision.totals = attempt.scores, attempt.totals
        if attempt.totals:
            decision.feasible = list(attempt.totals)
            if len(decision.feasible) != attempt.feasible:
                raise SilentSchedulerError(f"the log lacks scores of {attempt.pod}")
        elif _scores_nothing(config, pod) or (attempt.evaluated == 1 and pod["status"].get("nominatedNodeName")):
            decision.feasible = None
        else:
            decision.feasible = [attempt.node]
    elif attempt.target:
        decision.preemption_node, decision.victims = attempt.target, attempt.victims
        decision.candidate_victims = attempt.victims_by_node
    return decision


def _shares_a_port(victim: str, objects: list[Obj]) -> bool:
    """Whether another pod on the victim's node holds the same host port.

    kube-scheduler keeps the ports of a node as a set: once one of two holders is gone, it takes the port for free. Who
    sees only the objects cannot know that there was one.
    """
    pods = {_key(each): each for each in objects if each["kind"] == "Pod"}
    ports = _host_ports(pods[victim])
    return any(
        ports & _host_ports(each)
        for key, each in pods.items()
        if key != victim and each["spec"].get("nodeName") == pods[victim]["spec"]["nodeName"]
    )


def _host_ports(pod: Obj) -> set[tuple[str, str, int]]:
    spec = pod["spec"]
    sidecars = [each for each in spec.get("initContainers", []) if each.get("restartPolicy") == "Always"]
    ports = [port for container in [*spec["containers"], *sidecars] for port in container.get("ports", [])]
    return {
        (port.get("hostIP") or "0.0.0.0", port["protocol"], port["hostPort"]) for port in ports if "hostPort" in port
    }


def _nomination(attempt: Attempt, pod: Obj) -> str:
    """What status.nominatedNodeName must be after a failed attempt: only some failures change it."""
    if attempt.target:
        return attempt.target
    before: str = pod.get("status", {}).get("nominatedNodeName", "")
    kept = "not eligible" in attempt.message or "preemption: " not in attempt.message
    return before if kept else ""


def _scores_nothing(config: Obj, pod: Obj) -> bool:
    for profile in config["profiles"]:
        if profile["schedulerName"] == pod["spec"]["schedulerName"]:
            score = profile.get("plugins", {}).get("score", {})
            return {"name": "*"} in score.get("disabled", []) and not score.get("enabled")
    return False


def _gives_devices(config: Obj, pod: Obj) -> bool:
    (profile,) = [each for each in config["profiles"] if each["schedulerName"] == pod["spec"]["schedulerName"]]
    disabled = profile.get("plugins", {}).get("multiPoint", {}).get("disabled", [])
    return {"name": "DynamicResources"} not in disabled


def _key(obj: Obj) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
