"""Runs DaemonSets: one pod on every node that it may run on.

The pod is not bound here: it asks for its node by name, in its node affinity, and the scheduler places it. It puts up
with the taints that a node gets when it is in trouble or cordoned. A node whose taints would drive new pods away keeps
the pod it has unless the taint is NoExecute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from podium.kube.json_object import JsonObject
from podium.kube.node import Node, Taint
from podium.kube.pod import Pod, Toleration
from podium.kube.toleration import untolerated
from podium.placement.required_nodes import RequiredNodes
from podium.workloads.budgets import scaled
from podium.workloads.daemon_sets import TOLERATED
from podium_cluster.apiserver.kinds.daemon_sets import GENERATION
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers import revisions
from podium_cluster.controllers.context import ControllerContext, copied, key_of, number
from podium_cluster.controllers.ownership import claimed_pods, create_pod, delete_pod, pod_from, selector_of
from podium_cluster.controllers.pods import Key, PodView
from podium_cluster.controllers.replica_set import next_available

HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
BURST = 100
SETTLE_SECONDS = 0.2
FIRST_FAILURE, LAST_FAILURE = 1.0, 900.0
"""Seconds for which a failed pod stays before it is replaced: the first, doubled each time, and the last."""


class Steps(msgspec.Struct):
    """Names of nodes that get a pod, and pods that go."""

    create: list[str]
    delete: list[PodView]
    failed: list[tuple[str, PodView]]
    """Those that failed, with their node: they go when their time has come."""


class DaemonSets:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("daemonset-controller")
        self._lane = context.lane("DaemonSet", self.sync)
        self._failures: dict[tuple[str, str], tuple[float, float]] = {}
        context.watch("DaemonSet", self._set_changed)
        context.watch_nodes(self._node_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        owner = self._context.get("DaemonSet", *key)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return
        history = revisions.revisions_of(self._context, owner)
        current, collisions = revisions.newest(self._context, owner, history, HASH_LABEL)
        marked = current["metadata"]["labels"][HASH_LABEL]
        template = template_with(owner, marked)
        eligible = eligibility(template, self._context.nodes)
        now = self._context.now()
        pods = self._pods_by_node(owner)
        steps = plan(owner, eligible, pods, marked, now)
        if not steps.create and not steps.delete and owner["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            steps = due_for_update(owner, eligible, pods, marked, now, steps)
        self._do(key, owner, template, steps, now)
        pods = self._pods_by_node(owner)
        status = status_of(owner, eligible, pods, marked, now, collisions)
        if status != owner.get("status"):
            self._context.update_status("DaemonSet", owner, status)
        live = {current["metadata"]["name"]}
        hashes = {pod.metadata.labels.get(HASH_LABEL) for each in pods.values() for pod in each}
        live |= {each["metadata"]["name"] for each in history if each["metadata"]["labels"].get(HASH_LABEL) in hashes}
        revisions.truncate(self._context, owner, history, live)
        everywhere = [pod for each in pods.values() for pod in each]
        wait = next_available(everywhere, number(owner["spec"], "minReadySeconds"), now)
        if wait is not None:
            self._lane.add_after(key, wait)

    def _pods_by_node(self, owner: JsonObject) -> dict[str, list[PodView]]:
        by_node: dict[str, list[PodView]] = {}
        for pod in claimed_pods(self._context, owner, selector_of(owner["spec"])):
            by_node.setdefault(pod.meant_for, []).append(pod)
        return by_node

    def _do(self, key: Key, owner: JsonObject, template: JsonObject, steps: Steps, now: float) -> None:
        more = len(steps.delete) > BURST or len(steps.create) > BURST
        for node, pod in steps.failed:
            if self._may_go(key, owner, node, now):
                message = f"Found failed daemon pod {pod.key[0]}/{pod.name} on node {node}, will try to kill it"
                self._recorder.warning(owner, "FailedDaemonPod", message)
                delete_pod(self._context, self._recorder, owner, pod)
        for pod in steps.delete[:BURST]:
            if pod.phase == "Succeeded":
                where = f"{pod.key[0]}/{pod.name} on node {pod.meant_for}"
                message = f"Found succeeded daemon pod {where}, will try to delete it"
                self._recorder.normal(owner, "SucceededDaemonPod", message)
            delete_pod(self._context, self._recorder, owner, pod)
        for node in steps.create[:BURST]:
            if create_pod(self._context, self._recorder, owner, pod_for(template, owner, node)) is None:
                return
        if more:
            self._lane.add(key)

    def _may_go(self, key: Key, owner: JsonObject, node: str, now: float) -> bool:
        """Whether the failed pod of that node may be replaced yet; a kubelet that refuses it would refuse the next."""
        where = (owner["metadata"]["uid"], node)
        delay, since = self._failures.get(where, (0.0, now))
        if delay and now - since < delay:
            self._lane.add_after(key, delay - (now - since))
            return False
        forgotten = now - since > 2 * LAST_FAILURE
        self._failures[where] = (FIRST_FAILURE if forgotten or not delay else min(2 * delay, LAST_FAILURE), now)
        return True

    def _set_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._lane.add(key_of(change))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and old.labels == new.labels and old.spec == new.spec:
            return
        for stored in self._context.api.store.items(self._context.kind("DaemonSet")):
            self._lane.add((stored.namespace, stored.name))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            owner = pod.metadata.controller if pod is not None else None
            if pod is not None and owner is not None and owner.kind == "DaemonSet":
                self._lane.add_after((pod.metadata.namespace, owner.name), SETTLE_SECONDS)


def template_with(owner: JsonObject, marked: str) -> JsonObject:
    """The template with the tolerations and labels that every pod of the set gets."""
    template: JsonObject = copied(owner["spec"]["template"])
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    generation = (owner["metadata"].get("annotations") or {}).get(GENERATION)
    if generation:
        labels[GENERATION_LABEL] = generation
    labels[HASH_LABEL] = marked
    tolerations = template["spec"].setdefault("tolerations", [])
    wanted = TOLERATED + ((("network-unavailable", "NoSchedule"),) if template["spec"].get("hostNetwork") else ())
    for name, effect in wanted:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    return template


def pod_for(template: JsonObject, owner: JsonObject, node: str) -> JsonObject:
    pod = pod_from(template, owner)
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required
    return pod


def eligibility(template: JsonObject, nodes: Mapping[str, Node]) -> dict[str, tuple[bool, bool]]:
    """For each node, in the order of names: may a pod be started there, and may one that runs there stay?"""
    pod = Pod(spec=msgspec.convert(template["spec"], type(Pod().spec), strict=False))
    required = RequiredNodes(pod)
    by_taints: dict[tuple[Taint, ...], tuple[bool, bool]] = {}
    found = {}
    for name in sorted(nodes):
        node = nodes[name]
        if (pod.spec.node_name and pod.spec.node_name != name) or not required.matches(node):
            found[name] = (False, False)
            continue
        if node.taints not in by_taints:
            by_taints[node.taints] = _by_taints(node.taints, pod.spec.tolerations)
        found[name] = by_taints[node.taints]
    return found


def _by_taints(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> tuple[bool, bool]:
    start = untolerated(taints, tolerations) is None
    return start, start or untolerated(taints, tolerations, ("NoExecute",)) is None


def plan(
    owner: JsonObject,
    eligible: Mapping[str, tuple[bool, bool]],
    pods: Mapping[str, Sequence[PodView]],
    marked: str,
    now: float,
) -> Steps:
    """The pods that are missing, doubled, finished, or where they must not be."""
    surge = bool(_limits(owner, 1)[0])
    steps = Steps([], [], [])
    for node, (start, stay) in eligible.items():
        here = [pod for pod in pods.get(node, ()) if not pod.terminating]
        if start and node not in pods:
            steps.create.append(node)
        elif stay:
            steps.failed += [(node, pod) for pod in here if pod.phase == "Failed"]
            steps.delete += [pod for pod in here if pod.phase == "Succeeded"]
            running = sorted((pod for pod in here if not pod.finished), key=_oldest)
            if not surge:
                steps.delete += running[1:]
            elif not running and start:
                steps.create.append(node)
            elif len(running) > 1:
                steps.delete += _superfluous(running, marked, number(owner["spec"], "minReadySeconds"), now)
        else:
            steps.delete += here
    for node, stray in pods.items():  # the node is gone, or the pod was for none
        if node and node not in eligible:
            steps.delete += [pod for pod in stray if not pod.terminating and not pod.spec.node_name]
    return steps


def _superfluous(running: Sequence[PodView], marked: str, wait: int, now: float) -> list[PodView]:
    """While surging a node may have an old pod and a new one, until the new one is available."""
    new = [pod for pod in running if pod.metadata.labels.get(HASH_LABEL) == marked]
    old = [pod for pod in running if pod.metadata.labels.get(HASH_LABEL) != marked]
    gone = new[1:] + old[1:]
    if new and old and (not old[0].ready or new[0].available(wait, now)):
        gone.append(old[0])
    return gone


def due_for_update(
    owner: JsonObject,
    eligible: Mapping[str, tuple[bool, bool]],
    pods: Mapping[str, Sequence[PodView]],
    marked: str,
    now: float,
    steps: Steps,
) -> Steps:
    """The old pods that may go now, or the nodes that get a new one beside the old."""
    wait = number(owner["spec"], "minReadySeconds")
    surge, unavailable = _limits(owner, sum(start for start, _ in eligible.values()))
    at_once: list[PodView] = []
    candidates: list[PodView] = []
    busy = 0
    for node in sorted(pods):
        here = [pod for pod in pods[node] if not pod.terminating]
        new = [pod for pod in here if pod.metadata.labels.get(HASH_LABEL) == marked]
        old = [pod for pod in here if pod.metadata.labels.get(HASH_LABEL) != marked]
        if len(here) == 1 and old:
            (candidates if old[0].available(wait, now) else at_once).append(old[0])
            busy += not surge and not old[0].available(wait, now)
        elif surge:
            busy += len(here) > 2 or (bool(new) and bool(old) and not new[0].available(wait, now))
        else:
            busy += len(here) != 1 or not new[0].available(wait, now)
    free = max(0, (surge or unavailable) - busy)
    due = at_once + candidates[:free]
    if not surge:
        return Steps([], due, steps.failed)
    return Steps([pod.meant_for for pod in due if eligible.get(pod.meant_for, (False,))[0]], [], steps.failed)


def status_of(
    owner: JsonObject,
    eligible: Mapping[str, tuple[bool, bool]],
    pods: Mapping[str, Sequence[PodView]],
    marked: str,
    now: float,
    collisions: int,
) -> JsonObject:
    wait = number(owner["spec"], "minReadySeconds")
    wanted = [node for node, (start, _) in eligible.items() if start]
    first = [min(pods[node], key=_oldest) for node in wanted if node in pods]
    misplaced = [node for node, (start, _) in eligible.items() if not start and node in pods]
    available = sum(pod.available(wait, now) for pod in first)
    status: JsonObject = {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": len(misplaced),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(pod.ready for pod in first),
    }
    others = {
        "observedGeneration": owner["metadata"].get("generation", 0),
        "updatedNumberScheduled": sum(pod.metadata.labels.get(HASH_LABEL) == marked for pod in first),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "collisionCount": collisions,
    }
    return status | {field: count for field, count in others.items() if count}


def _limits(owner: JsonObject, desired: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable; not both are zero."""
    strategy = owner["spec"]["updateStrategy"]
    rolling = strategy.get("rollingUpdate") or {}
    if strategy["type"] != "RollingUpdate":
        return 0, 0
    surge = scaled(rolling.get("maxSurge") or 0, desired, round_up=True)
    unavailable = scaled(rolling.get("maxUnavailable", 1), desired, round_up=True)
    return surge, unavailable or (0 if surge else 1)


def _oldest(pod: PodView) -> tuple[bool, str, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.name
