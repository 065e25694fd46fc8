"""Keeps account of the devices of a cluster: which are offered, which are in use, and which are about to be.

A claim that a pod was given devices for counts as in flight from Reserve until the claim itself shows them, so that no
other pod gets them meanwhile. All profiles of a scheduler share one account. It also knows which class stands behind
the name of an extended resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from podium.cluster.journal import Journal
from podium.cluster.objects import Objects
from podium.kube import DeviceClass, Pod, ResourceClaim
from podium.kube.devices import Allocation
from podium.kube.extended_resources import DEVICE_CLASS_PREFIX, is_for_extended_resources, owning_pods
from podium.kube.meta import parse_time
from podium.kube.versions import Gate
from podium.kube.versions.devices import NEWEST, DeviceRules
from podium.placement.devices.inventory import DeviceInventory, PoolID
from podium.placement.devices.tally import DeviceTally

if TYPE_CHECKING:
    from podium.framework import Handle


class DeviceResourceNames:
    """The device classes by the names of extended resources that they stand behind.

    A class stands behind `deviceclass.resource.kubernetes.io/<its name>`, and behind the name that it gives itself. Of
    two with one name the newer wins, of two of the same age the one that comes first by name. Three habits are
    kube-scheduler's: a class that loses when it comes is not known by its own name either, a change that leaves the
    name as it is is not noticed, and deleting any class takes the name away that it gave itself.
    """

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self.version = 0
        """Moves with every change."""

    def class_of(self, resource: str) -> DeviceClass | None:
        return self._classes.get(resource)

    def class_changed(self, _key: str, before: DeviceClass | None, after: DeviceClass | None) -> None:
        self.version += 1
        if after is None:
            if before is not None:
                self._forget(before)
            return
        name = after.spec.extended_resource_name
        rival = self._classes.get(name) if name else None
        if rival is not None and not _prevails(after, rival):
            return
        if before is not None:
            self._forget(before)
        if name:
            self._classes[name] = after
        self._classes[DEVICE_CLASS_PREFIX + after.name] = after

    def _forget(self, gone: DeviceClass) -> None:
        self._classes.pop(DEVICE_CLASS_PREFIX + gone.name, None)
        if gone.spec.extended_resource_name:
            self._classes.pop(gone.spec.extended_resource_name, None)


def _prevails(one: DeviceClass, other: DeviceClass) -> bool:
    made, others = _made(one), _made(other)
    return one.name < other.name if made == others else made > others


def _made(each: DeviceClass) -> float:
    made = each.metadata.creation_timestamp
    return parse_time(made) if made else 0.0


class DeviceUses:
    """The account of one cluster."""

    def __init__(self, objects: Objects, rules: DeviceRules = NEWEST) -> None:
        self.rules = rules
        self._slices = objects.resource_slices
        self._taint_rules = objects.device_taint_rules
        self._classes = objects.device_classes
        self._inventory = DeviceInventory((), rules=rules)
        self._offered_version = -1, -1
        self._in_flight: dict[str, Allocation] = {}
        self._made_for: dict[tuple[str, str, str], dict[str, None]] = {}
        """By namespace, name and uid of a pod: the claims for its extended resources, the latest at the end."""
        self._known_classes: tuple[int, dict[str, DeviceClass]] = -1, {}
        self.changed_pools: Journal[PoolID] = Journal()
        """The pools of devices that came into use, or no longer are."""
        self.tally = DeviceTally(self.changed_pools.append)
        self.resources = DeviceResourceNames()
        """The extended resources that device classes stand behind."""
        self._claims = objects.resource_claims
        self._claims.follow(self._claim_changed)
        if rules.extended_resources:
            self._classes.follow(self.resources.class_changed)

    @property
    def inventory(self) -> DeviceInventory:
        version = self._slices.version, self._taint_rules.version
        if self._offered_version != version:
            rules, tainting = self.rules, self._taint_rules
            self._inventory = DeviceInventory(self._slices, self._inventory, rules=rules, taint_rules=tainting)
            self._offered_version = version
        return self._inventory

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        if self._known_classes[0] != self._classes.version:
            self._known_classes = self._classes.version, {each.name: each for each in self._classes}
        return self._known_classes[1]

    @property
    def classes_version(self) -> int:
        return self._classes.version

    def claim_made_for(self, pod: Pod) -> ResourceClaim | None:
        """The claim that the scheduler made for a pod's extended resources."""
        keys = self._made_for.get((pod.namespace, pod.name, pod.uid))
        return self._claims.get(next(reversed(keys))) if keys else None

    def is_in_flight(self, claim: ResourceClaim) -> bool:
        return claim.uid in self._in_flight

    def begin(self, claim: ResourceClaim, allocation: Allocation) -> None:
        """Count devices that a claim is about to be given."""
        self.end(claim)
        self._in_flight[claim.uid] = allocation
        self.tally.add(allocation)

    def end(self, claim: ResourceClaim) -> None:
        """Count them no more: the claim shows them by itself, or will not be given them."""
        allocation = self._in_flight.pop(claim.uid, None)
        if allocation is not None:
            self.tally.remove(allocation)

    def _claim_changed(self, key: str, before: ResourceClaim | None, after: ResourceClaim | None) -> None:
        if before is not None and after is not None and before.uid != after.uid:
            self._claim_changed(key, before, None)
            before = None
        if before is not None and is_for_extended_resources(before):
            for name, uid in owning_pods(before):
                keys = self._made_for.get((before.namespace, name, uid), {})
                keys.pop(key, None)
                if not keys:
                    self._made_for.pop((before.namespace, name, uid), None)
        if after is not None and is_for_extended_resources(after):
            for name, uid in owning_pods(after):
                self._made_for.setdefault((after.namespace, name, uid), {})[key] = None
        old = before.status.allocation if before is not None else None
        new = after.status.allocation if after is not None else None
        if old is None and new is not None:
            self.tally.add(new)
        elif old is not None and new is None:
            self.tally.remove(old)
        elif old is not None and new is not None and old != new:
            self.tally.remove(old)
            self.tally.add(new)
        if after is None and before is not None:
            self.end(before)
        elif after is not None and new is not None:
            self.end(after)


_ACCOUNTS: WeakKeyDictionary[Objects, DeviceUses] = WeakKeyDictionary()


def uses_in(handle: Handle) -> DeviceUses:
    """The account of a plugin's cluster, with the rules of the minor that it decides as."""
    rules = handle.rules.devices
    if Gate.DEVICE_TAINT_RULES not in handle.gates:
        rules = replace(rules, taint_rules=False)
    return device_uses(handle.cluster.objects, rules)


def device_uses(objects: Objects, rules: DeviceRules = NEWEST) -> DeviceUses:
    """The account of a cluster, made when it is first asked for, with the rules that are given then."""
    found = _ACCOUNTS.get(objects)
    if found is None:
        found = _ACCOUNTS[objects] = DeviceUses(objects, rules)
    return found
