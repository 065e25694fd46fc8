"""Checks what must hold for devices: none is given twice, none is lost, and every scheduler counts what is given.

    a device has one claim             at every write, among claims at the API server
    no claim keeps unused devices      after the faults: what has devices has a pod that uses it or waits with it
    devices are counted as they are    after the faults: each scheduler's account is the API server's

A scheduler decides on what it has heard, and a write of one that leads no more may arrive late. It is to blame for a
device with two claims where it gave both itself, or had heard of the first as it chose the second. A claim of a name
that no pod refers to any more may keep its devices: Kubernetes gives back what a pod used, not what one was about to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from podium.engine.scheduler import Scheduler
from podium.kube import Pod, ResourceClaim
from podium.kube.claim_status import ClaimNotReadyError, claim_name
from podium.kube.devices import Allocation
from podium.kube.json_object import JsonObject
from podium.placement.devices.tally import DeviceID
from podium.placement.devices.uses import device_uses
from podium.run.process import SchedulerProcess
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers.resource_claims import is_done
from podium_cluster.kubelets.shapes import DRIVER, DeviceShape
from tools.chaos.machines import kind_of
from tools.kit.virtual_time import VirtualProcess

ONE_OWNER: Final = "a device has one claim"
NONE_UNUSED: Final = "no claim keeps unused devices"
DEVICES_COUNTED: Final = "devices are counted as they are"

Devices = tuple[DeviceID, ...]


def shape_on(node: str, count: int) -> DeviceShape:
    return DeviceShape(nodes=node, count=count, driver=DRIVER)


class DeviceChecks:
    """The devices of one run, at the API server and as schedulers knew them when they decided."""

    def __init__(
        self,
        api: EmbeddedApi,
        checked: Callable[[str], None],
        violated: Callable[[str, str], None],
        excused: Callable[[], None],
    ) -> None:
        self._checked, self._violated, self._excused = checked, violated, excused
        self._claims: dict[str, Devices] = {}
        """By uid of the claim: the devices that it has."""
        self._owners: dict[DeviceID, dict[str, str]] = {}
        """By device: the claims that have it, uid and key."""
        self._sent: dict[tuple[str, Devices], VirtualProcess] = {}
        self._writers: dict[str, VirtualProcess | None] = {}
        self._known: dict[VirtualProcess, dict[str, frozenset[str]]] = {}
        """By process and uid of a pod: the claims that it knew to have devices as it chose a node."""
        api.store.listen(self._claim_changed, kind_of(api, "resource.k8s.io/v1", "ResourceClaim"))

    def decided(self, process: VirtualProcess, scheduler: SchedulerProcess, pod: Pod) -> None:
        """A scheduler has chosen a node: note what it had heard of claims by then."""
        if pod.spec.resource_claims:
            heard: dict[str, ResourceClaim] = scheduler.live.informers.by_kind[ResourceClaim].store
            given = frozenset(claim.uid for claim in heard.values() if claim.status.allocation is not None)
            self._known.setdefault(process, {})[pod.uid] = given

    def sent(self, process: VirtualProcess, line: bytes, body: bytes) -> None:
        """A process sends a change of a claim's status."""
        try:
            status = msgspec.json.decode(body).get("status") or {}
        except msgspec.DecodeError:
            return
        devices = _devices(status.get("allocation"))
        if devices:
            parts = line.split(b" ")[1].decode().split("/")
            self._sent[f"{parts[5]}/{parts[7]}", devices] = process

    def _claim_changed(self, change: ObjectChange) -> None:
        uid, key = change.new.uid, f"{change.new.namespace}/{change.new.name}"
        before = self._claims.pop(uid, ())
        claim = change.new.decode()
        status = {} if change.type == "DELETED" else claim.get("status") or {}
        devices = _devices(status.get("allocation"))
        for device in before:
            self._owners[device].pop(uid, None)
        if not devices:
            return
        self._checked(ONE_OWNER)
        self._claims[uid] = devices
        if devices != before:
            self._writers[uid] = self._sent.get((key, devices))
        for device in devices:
            others = self._owners.setdefault(device, {})
            if others and devices != before:
                self._judge(device, uid, key, others, [user["uid"] for user in status.get("reservedFor") or ()])
            others[uid] = key

    def _judge(self, device: DeviceID, uid: str, key: str, others: dict[str, str], users: list[str]) -> None:
        """Whether the process that gave a device a second claim had to know of the first."""
        by = self._writers.get(uid)
        for other, other_key in others.items():
            known = any(other in self._known.get(by, {}).get(user, ()) for user in users) if by is not None else False
            if by is not None and (known or self._writers.get(other) is by):
                self._violated(ONE_OWNER, f"{by.name} gives {device} to {key}, but {other_key} has it")
            else:
                self._excused()


def _devices(allocation: JsonObject | None) -> Devices:
    """What counts as taken of an allocation."""
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    return tuple(
        DeviceID(each["driver"], each["pool"], each["device"])
        for each in results
        if not each.get("adminAccess") and not each.get("shareID")
    )


def unused_devices(api: EmbeddedApi, pods: dict[str, Pod]) -> Iterator[str]:
    """Claims that have devices though no pod uses them, or waits with them; `pods` are all by uid."""
    wanted = set()
    for pod in pods.values():
        if not is_done(pod):
            wanted |= {f"{pod.namespace}/{name}" for name in _claim_names(pod)}
    for stored in api.store.items(kind_of(api, "resource.k8s.io/v1", "ResourceClaim")):
        claim = msgspec.json.decode(stored.raw, type=ResourceClaim)
        if claim.status.allocation is None:
            continue
        gone = [user.name for user in claim.status.reserved_for if user.uid not in pods or is_done(pods[user.uid])]
        if gone:
            yield f"claim {claim.key} has devices for {gone[0]}, which is gone or has ended"
        elif claim.metadata.controller is not None and claim.key not in wanted:
            yield f"claim {claim.key} has devices, but its pod is gone"


def _claim_names(pod: Pod) -> Iterator[str]:
    for entry in pod.spec.resource_claims:
        try:
            name = claim_name(pod, entry)
        except ClaimNotReadyError:
            continue
        if name is not None:
            yield name


def miscounted_devices(api: EmbeddedApi, engine: Scheduler) -> Iterator[str]:
    """Where a scheduler does not count the devices that claims have."""
    true: Counter[DeviceID] = Counter()
    for stored in api.store.items(kind_of(api, "resource.k8s.io/v1", "ResourceClaim")):
        allocation: Allocation | None = msgspec.json.decode(stored.raw, type=ResourceClaim).status.allocation
        for each in allocation.devices.results if allocation is not None else ():
            true[DeviceID(each.driver, each.pool, each.device)] += 1
    counted = device_uses(engine.cluster.objects).tally.dedicated
    for device in sorted(true.keys() | counted.keys()):
        if true[device] != counted[device]:
            yield f"{device} counts for {counted[device]} claims, not {true[device]}"
