"""Evicts pods that do not tolerate a NoExecute taint of their node, or whose claims do not tolerate one of a device, at
once or when their tolerationSeconds have passed.

A pod that says nothing about not-ready and unreachable nodes stays for five minutes: in other clusters the API server
writes that toleration into every pod.

A taint of a device stands in the slice that offers the device, or in a DeviceTaintRule that selects it. It counts from
the time it was added, plus the tolerationSeconds of the claim's result. The condition EvictionInProgress of a rule says
how many pods still have to go and how many are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from podium.kube.claim_status import ClaimNotReadyError, claim_name
from podium.kube.decode import decode_json
from podium.kube.devices import DeviceRequestAllocation, DeviceTaint, DeviceTaintRule, ResourceClaim, ResourceSlice
from podium.kube.meta import parse_time
from podium.kube.node import Node, Taint
from podium.kube.pod import Pod
from podium.kube.toleration import NO_EXECUTE, tolerates
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers.conditions import condition
from podium_cluster.controllers.context import ControllerContext, key_of
from podium_cluster.controllers.node_lifecycle import NOT_READY, UNREACHABLE
from podium_cluster.controllers.pods import Key, PodView

DEFAULT_SECONDS = 300.0


class TaintEviction:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("taint-eviction-controller")
        self._lane = context.lane("TaintEviction", self.sync)
        self._since: dict[str, float] = {}
        """When the time of each pod that has to leave began, by uid."""
        context.watch_nodes(self._node_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        pod = self._context.pods.all.get(key)
        node = self._context.nodes.get(pod.spec.node_name) if pod is not None else None
        if pod is None:
            return
        wait = patience(pod, node.taints) if node is not None and not pod.terminating else None
        if wait is None:
            self._since.pop(pod.metadata.uid, None)
            return
        left = self._since.setdefault(pod.metadata.uid, self._context.now()) + wait - self._context.now()
        if left > 0:
            self._lane.add_after(key, left)
            return
        metadata = {"namespace": key[0], "name": key[1], "uid": pod.metadata.uid}
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self._recorder.normal(about, "TaintManagerEviction", f"Marking for deletion Pod {key[0]}/{key[1]}")
        reason = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        mark_disrupted(self._context, key, *reason)
        self._context.delete("Pod", *key)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None and (old is None or old.taints != new.taints):
            for pod in self._context.pods.on_node(new.name):
                self._lane.add(pod.key)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if new is None and old is not None:
            self._since.pop(old.metadata.uid, None)
        if new is not None and new.spec.node_name and (old is None or not old.spec.node_name):
            node = self._context.nodes.get(new.spec.node_name)
            if node is not None and any(taint.effect == NO_EXECUTE for taint in node.taints):
                self._lane.add(new.key)


def patience(pod: PodView, taints: Sequence[Taint]) -> float | None:
    """Seconds for which the pod may stay; None: as long as it likes."""
    shortest: float | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        matching = [each for each in pod.spec.tolerations if tolerates(each, taint)]
        if not matching:
            wait = DEFAULT_SECONDS if taint.key in (NOT_READY, UNREACHABLE) else 0.0
        else:
            limits = [each.toleration_seconds for each in matching if each.toleration_seconds is not None]
            if not limits:
                continue
            wait = float(max(0, min(limits)))
        shortest = wait if shortest is None else min(shortest, wait)
    return shortest


def mark_disrupted(context: ControllerContext, key: Key, reason: str, message: str, *, phase: str = "") -> None:
    """Notes on the pod why it is taken away."""
    pod = context.get("Pod", *key)
    if pod is None:
        return
    new = {**(pod.get("status") or {}), **({"phase": phase} if phase else {})}
    if condition(new, "DisruptionTarget") is None:
        entry = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}
        entry |= {"lastTransitionTime": context.timestamp(), "reason": reason, "message": message}
        new["conditions"] = [*(new.get("conditions") or ()), entry]
    if new != pod.get("status"):
        context.update_status("Pod", pod, new)


CONDITION: Final = "EvictionInProgress"
_REASON: Final = ("DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint")
_NOT_AGAIN: Final = (
    "if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger "
    "an update."
)


class DeviceTaintEviction:
    """Knows claims with devices, slices and rules as they are now."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("device-taint-eviction")
        self._pod_lane = context.lane("DeviceTaintEviction", self._sync_pod)
        self._rule_lane = context.lane("DeviceTaintRule", self._sync_rule)
        self._pods: dict[Key, Pod] = {}
        """Those that name claims."""
        self._claims: dict[Key, ResourceClaim] = {}
        self._slices: dict[Key, ResourceSlice] = {}
        self._rules: dict[Key, DeviceTaintRule] = {}
        self._evicted: Counter[str] = Counter()
        """How many pods each rule made go, by its uid."""
        context.watch("Pod", self._pod_changed)
        context.watch("ResourceClaim", self._claim_changed)
        context.watch("ResourceSlice", self._slice_changed)
        context.watch("DeviceTaintRule", self._rule_changed)

    # What is looked at when something changes.

    def _pod_changed(self, change: ObjectChange) -> None:
        key, raw = key_of(change), change.new.raw
        before = self._pods.pop(key, None)
        if change.type != "DELETED" and b'"resourceClaims"' in raw:
            pod = self._pods[key] = decode_json(Pod, raw)
            if pod.spec.node_name and (before is None or not before.spec.node_name):
                self._pod_lane.add(key)
        if before is not None and (key not in self._pods or self._pods[key].terminating):
            self._look_at_rules()

    def _claim_changed(self, change: ObjectChange) -> None:
        key = key_of(change)
        before = self._claims.pop(key, None)
        claim = decode_json(ResourceClaim, change.new.raw)
        if change.type != "DELETED" and claim.status.allocation is not None:
            self._claims[key] = claim
            self._look_at_users(claim)
        if before is not None or key in self._claims:
            self._look_at_rules()

    def _slice_changed(self, change: ObjectChange) -> None:
        self._slices.pop(key_of(change), None)
        if change.type != "DELETED":
            self._slices[key_of(change)] = decode_json(ResourceSlice, change.new.raw)
        self._look_at_all_users()

    def _rule_changed(self, change: ObjectChange) -> None:
        self._rules.pop(key_of(change), None)
        if change.type != "DELETED":
            self._rules[key_of(change)] = decode_json(DeviceTaintRule, change.new.raw)
            self._rule_lane.add(key_of(change))
        self._look_at_all_users()

    def _look_at_all_users(self) -> None:
        for claim in self._claims.values():
            self._look_at_users(claim)

    def _look_at_users(self, claim: ResourceClaim) -> None:
        for user in claim.status.reserved_for:
            if user.resource == "pods":
                self._pod_lane.add((claim.namespace, user.name))

    def _look_at_rules(self) -> None:
        for key in self._rules:
            self._rule_lane.add(key)

    # A pod.

    def _sync_pod(self, key: Key) -> None:
        pod = self._pods.get(key)
        if pod is None or pod.terminating or not pod.spec.node_name:
            return
        causes = [cause for claim in self._claims_of(pod) for cause in self._causes(claim)]
        if not causes:
            return
        left = min(when for when, _rule in causes) - self._context.now()
        if left > 0:
            self._pod_lane.add_after(key, left)
            return
        metadata = {"namespace": key[0], "name": key[1], "uid": pod.metadata.uid}
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self._recorder.normal(about, "DeviceTaintManagerEviction", "Marking for deletion")
        mark_disrupted(self._context, key, *_REASON)
        self._context.delete("Pod", *key)
        self._evicted.update({rule.metadata.uid for _when, rule in causes if rule is not None})
        self._look_at_rules()

    def _claims_of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """The pod's claims that have devices for it."""
        for entry in pod.spec.resource_claims:
            try:
                name = claim_name(pod, entry)
            except ClaimNotReadyError:
                continue
            claim = self._claims.get((pod.namespace, name)) if name else None
            if claim is not None and any(user.uid == pod.uid for user in claim.status.reserved_for):
                yield claim

    def _causes(self, claim: ResourceClaim) -> Iterator[tuple[float, DeviceTaintRule | None]]:
        """When each taint that the claim does not tolerate takes effect, and the rule that it comes from."""
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            for taint, rule in self._taints(result):
                if taint.effect == NO_EXECUTE and (when := _effective(result, taint)) is not None:
                    yield when, rule

    def _taints(self, result: DeviceRequestAllocation) -> Iterator[tuple[DeviceTaint, DeviceTaintRule | None]]:
        for each in self._slices.values():
            if (each.spec.driver, each.spec.pool.name) == (result.driver, result.pool):
                for device in each.spec.devices:
                    if device.name == result.device:
                        yield from ((taint, None) for taint in device.taints)
        for rule in self._rules.values():
            if selects(rule, result.driver, result.pool, result.device):
                yield rule.spec.taint, rule

    # A rule.

    def _sync_rule(self, key: Key) -> None:
        rule, obj = self._rules.get(key), self._context.get("DeviceTaintRule", *key)
        if rule is None or obj is None:
            return
        status = obj.get("status") or {}
        known = condition(status, CONDITION)
        if rule.spec.taint.effect == "None" and known is not None:
            return  # said once
        reason, message, pending = self._progress(rule)
        new = {"type": CONDITION, "status": "True" if pending else "False", "reason": reason, "message": message}
        if known is None or any(known.get(field) != value for field, value in new.items()):
            new |= {"lastTransitionTime": self._context.timestamp()}
            new |= {"observedGeneration": obj["metadata"].get("generation", 0)}
            others = [each for each in status.get("conditions") or () if each["type"] != CONDITION]
            self._context.update_status("DeviceTaintRule", obj, {**status, "conditions": [*others, new]})

    def _progress(self, rule: DeviceTaintRule) -> tuple[str, str, bool]:
        """Reason and message of the condition, and whether pods have to go."""
        effect = rule.spec.taint.effect
        pods = self._affected(rule) if effect in (NO_EXECUTE, "None") else []
        spaces = len({namespace for namespace, _name in pods})
        evicted = self._evicted[rule.metadata.uid]
        sentences: list[str] = []
        if effect == NO_EXECUTE and pods:
            reason = "PodsPendingEviction"
            where = "1 namespace." if spaces == 1 else f"{spaces} different namespaces."
            sentences.append(f"{_many(len(pods), 'pod needs', 'pods need')} to be evicted in {where}")
        elif effect == NO_EXECUTE:
            reason = "Completed" if evicted else "NotStarted"
        elif effect == "None":
            reason = "NoEffect"
            published, allocated = self._selected(rule)
            where = "1 namespace" if spaces == 1 else f"{spaces} different namespaces"
            sentences += [
                f"{_many(published, 'published device', 'published devices')} selected.",
                f"{_many(allocated, 'allocated device', 'allocated devices')} selected.",
                f"{_many(len(pods), 'pod', 'pods')} would be evicted in {where} {_NOT_AGAIN}",
            ]
        else:
            reason = "OtherEffect"
            sentences.append("Eviction only happens for the NoExecute effect.")
        if evicted:
            sentences.append(f"{_many(evicted, 'pod', 'pods')} evicted since starting the controller.")
        return reason, " ".join(sentences), effect == NO_EXECUTE and bool(pods)

    def _affected(self, rule: DeviceTaintRule) -> list[Key]:
        """The pods that the taint of a rule makes go, or would."""
        found: dict[Key, None] = {}
        for claim in self._claims.values():
            allocation = claim.status.allocation
            results = allocation.devices.results if allocation is not None else ()
            taint = rule.spec.taint
            if any(
                selects(rule, each.driver, each.pool, each.device) and _effective(each, taint) is not None
                for each in results
            ):
                users = (user for user in claim.status.reserved_for if user.resource == "pods")
                found.update(dict.fromkeys((claim.namespace, user.name) for user in users))
        return [key for key in found if (pod := self._pods.get(key)) is not None and not pod.terminating]

    def _selected(self, rule: DeviceTaintRule) -> tuple[int, int]:
        """How many published and how many allocated devices a rule selects."""
        published = {
            (each.spec.driver, each.spec.pool.name, device.name)
            for each in self._slices.values()
            for device in each.spec.devices
        }
        allocated = {
            (each.driver, each.pool, each.device)
            for claim in self._claims.values()
            if claim.status.allocation is not None
            for each in claim.status.allocation.devices.results
        }
        return sum(selects(rule, *each) for each in published), sum(selects(rule, *each) for each in allocated)


def selects(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Whether a rule taints a device; one without a selector taints none."""
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.driver in (None, driver)
        and selector.pool in (None, pool)
        and selector.device in (None, device)
    )


def _effective(result: DeviceRequestAllocation, taint: DeviceTaint) -> float | None:
    """When a NoExecute taint makes the users of a device go; None where the claim tolerates it for ever."""
    added = parse_time(taint.time_added) if taint.time_added else 0.0
    matching = [each for each in result.tolerations if each.effect == NO_EXECUTE and tolerates(each, taint)]
    if not matching:
        return added
    limits = [each.toleration_seconds for each in matching]
    finite: list[int] = [max(0, limit) for limit in limits if limit is not None]
    return None if len(finite) < len(limits) else added + min(finite)


def _many(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
