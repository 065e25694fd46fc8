"""Checks what must hold at every write, whatever goes wrong around it.

    every pod has one binding            bound once; the process that bound it never asks for another node
    no bound pod is decided for again    by a process that has heard of its binding
    only the leader writes               as it sends, the API server's lease names it and has not run out
    no node is overcommitted             as far as the sender could know: see below
    every volume has one claim           what was given to one is never given to another
    no quota is exceeded                 in the same way: see `quotas.py`
    a device has one claim               in the same way: see `devices.py`
    nothing breaks                       no process ends by an error of its own, nothing is logged with a traceback

A scheduler decides on what it has heard. A node may have shrunk, or taken pods of another leader, before it
hears of that. It can then place too much; that lies in the nature of the API, and kube-scheduler does the same. A node
is overcommitted only where the pods that the sender knew of or had bound itself are too much for what it knew the node
to have. `final_checks.py` checks what must hold after the faults, `gangs.py` what must hold for gangs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from podium.cluster import PlacedPod
from podium.cluster.facts import PodFacts
from podium.framework.cycle import Cycle
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.kube import Node, Pod
from podium.kube.json_object import JsonObject
from podium.run.process import SchedulerProcess
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.store.collection import ObjectChange
from tools.chaos.amounts import Amounts, allocatable_of, requests_of, sum_of
from tools.chaos.devices import DeviceChecks
from tools.chaos.gangs import GANGS_WHOLE, half_bound
from tools.chaos.machines import kind_of
from tools.chaos.network import Link
from tools.chaos.quotas import QUOTAS_HELD, QuotaChecks
from tools.kit.virtual_time import VirtualProcess

ONE_BINDING = "every pod has one binding"
KNOWN_BOUND = "no bound pod is decided for again"
ONLY_THE_LEADER = "only the leader writes"
NOT_OVERCOMMITTED = "no node is overcommitted"
ONE_CLAIM = "every volume has one claim"
NOTHING_BREAKS = "nothing breaks"

ENDED = ("Succeeded", "Failed")
_GUARDED = (b"/binding ", b"/status ", b"DELETE /api/v1/namespaces/", b"PATCH /api/v1/persistentvolumes/")


class Violation(NamedTuple):
    """An invariant that did not hold, and when."""

    at: float
    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"


class Bound(NamedTuple):
    """A pod on a node, and who put it there when."""

    key: str
    node: str
    asks: Amounts
    by: VirtualProcess | None
    at: float


class Invariants:
    """The checks of one run, and the violations they found; `scheduler_of` gives the scheduler in a process."""

    def __init__(self, api: EmbeddedApi, scheduler_of: Callable[[VirtualProcess], SchedulerProcess | None]) -> None:
        self._api = api
        self._scheduler_of = scheduler_of
        self._lease = ("", 0.0, 0.0)  # who holds it, since when it was last written, and for how long it counts
        self.checked: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self.excused = 0
        """Nodes overcommitted, quotas exceeded and devices given twice, in a way that the sender could not know of."""
        self._quotas: QuotaChecks | None = None
        self._devices: DeviceChecks | None = None
        self._pods: dict[str, Bound] = {}  # that have a node and have not ended, by uid
        self._ever: dict[str, Bound] = {}
        self._offered: dict[str, Amounts] = {}
        self._knowledge: dict[tuple[str, VirtualProcess], tuple[frozenset[str], Amounts | None]] = {}
        """By pod and process: which pods it knew to be on the node it chose, and what it knew that node to have."""
        self._last_binder: dict[str, VirtualProcess] = {}  # by uid: the process that last sent a binding
        api.store.listen(self._pod_changed, kind_of(api, "v1", "Pod"))
        api.store.listen(self._node_changed, kind_of(api, "v1", "Node"))
        api.store.listen(self._volume_changed, kind_of(api, "v1", "PersistentVolume"))
        api.store.listen(self._lease_changed, kind_of(api, "coordination.k8s.io/v1", "Lease"))

    def hold_quotas(self, quotas: list[JsonObject]) -> None:
        """Check these quotas, too."""
        self._quotas = QuotaChecks(self._api, (quota["metadata"]["namespace"] for quota in quotas))

    def watch_devices(self) -> None:
        """Check devices, too."""
        self._devices = DeviceChecks(self._api, self.count, self.violated, self._excuse)

    def _excuse(self) -> None:
        self.excused += 1

    def count(self, invariant: str) -> None:
        """An invariant was checked."""
        self.checked[invariant] += 1

    def violated(self, invariant: str, what: str) -> None:
        self.violations.append(Violation(asyncio.get_running_loop().time(), invariant, what))

    # Decisions and requests of schedulers

    def look_at(self, process: VirtualProcess, scheduler: SchedulerProcess) -> None:
        """Check every decision of a new scheduler, at the moment it is made."""
        cluster = scheduler.live.engine.cluster
        assume = cluster.assume

        def assumed(pod: Pod, node_name: str, facts: PodFacts | None = None) -> PlacedPod:
            self.decided(process, scheduler, pod, node_name)
            return assume(pod, node_name, facts)

        cluster.assume = assumed  # type: ignore[method-assign]
        engine = scheduler.live.engine
        start_binding = engine.start_binding

        def starting(
            runtime: ProfileRuntime, cycle: Cycle, queued: QueuedPod, node_name: str, waits: dict[str, float]
        ) -> None:
            self.checked[GANGS_WHOLE] += 1
            wrong = None if waits else half_bound(engine, cycle.pod)
            if wrong is not None:
                self.violated(GANGS_WHOLE, f"{process.name}: {wrong}")
            start_binding(runtime, cycle, queued, node_name, waits)

        engine.start_binding = starting  # type: ignore[method-assign]

    def sent(self, link: Link, data: bytes) -> None:
        """For `Network.sent`."""
        line = data[: data.find(b"\r\n")]
        if link.process is None or line.startswith(b"GET ") or not any(part in line for part in _GUARDED):
            return
        self.checked[ONLY_THE_LEADER] += 1
        scheduler = self._scheduler_of(link.process)
        if scheduler is not None and scheduler.election is not None:
            self._lease_is_held(link.process, scheduler.election.identity, line)
        if self._devices is not None and b"/resourceclaims/" in line:
            self._devices.sent(link.process, line, data.partition(b"\r\n\r\n")[2])
        if b"/binding " in line:
            self._binding_sent(link.process, data.partition(b"\r\n\r\n")[2])

    def _lease_is_held(self, process: VirtualProcess, identity: str, line: bytes) -> None:
        holder, renewed, duration = self._lease
        what = line.rpartition(b" ")[0].decode()
        age = asyncio.get_running_loop().time() - renewed
        if holder != identity:
            self.violated(
                ONLY_THE_LEADER, f"{process.name} sends {what} while the lease is held by {holder or 'no process'}"
            )
        elif age > duration:
            self.violated(ONLY_THE_LEADER, f"{process.name} sends {what} {age:.1f} s after the lease was last renewed")

    def _lease_changed(self, change: ObjectChange) -> None:
        spec = change.new.decode()["spec"]
        now = asyncio.get_running_loop().time()
        self._lease = (spec.get("holderIdentity") or "", now, float(spec["leaseDurationSeconds"]))

    def _binding_sent(self, process: VirtualProcess, body: bytes) -> None:
        binding = msgspec.json.decode(body)
        uid, node = binding["metadata"]["uid"], binding["target"]["name"]
        self.checked[ONE_BINDING] += 1
        self._last_binder[uid] = process
        known = self._ever.get(uid)
        if known is not None and known.by is process and known.node != node:
            self.violated(ONE_BINDING, f"{process.name} bound {known.key} to {known.node} and now asks for {node}")

    # Changes at the API server

    def _pod_changed(self, change: ObjectChange) -> None:
        uid = change.new.uid
        if change.type == "DELETED":
            self._pods.pop(uid, None)
            return
        pod = change.new.decode()
        node = pod["spec"].get("nodeName")
        if not node:
            return
        if pod["status"].get("phase") in ENDED:
            self._pods.pop(uid, None)
        known = self._ever.get(uid)
        if known is None:
            self._bound(pod, node)
        elif known.node != node:
            self.violated(ONE_BINDING, f"{known.key} was on {known.node} and is now on {node}")

    def _bound(self, pod: dict[str, Any], node: str) -> None:
        meta = pod["metadata"]
        by = self._last_binder.get(meta["uid"])
        now = asyncio.get_running_loop().time()
        bound = Bound(f"{meta['namespace']}/{meta['name']}", node, requests_of(pod), by, now)
        self._ever[meta["uid"]] = self._pods[meta["uid"]] = bound
        self.checked[NOT_OVERCOMMITTED] += 1
        on_node = {uid: each for uid, each in self._pods.items() if each.node == node}
        offered = self._offered.get(node)
        total = sum_of(each.asks for each in on_node.values())
        self._quotas_hold(bound, meta["uid"])
        if offered is None or total.within(offered):
            return
        if by is not None and self._knowingly(by, bound, meta["uid"], on_node):
            self.violated(
                NOT_OVERCOMMITTED, f"{by.name} puts {bound.key} on {node}: {total} asked for, {offered} there"
            )
        else:
            self.excused += 1

    def _quotas_hold(self, bound: Bound, uid: str) -> None:
        if self._quotas is None:
            return
        self.checked[QUOTAS_HELD] += 1
        pods = {other: (each.key.partition("/")[0], each.asks, each.by) for other, each in self._pods.items()}
        exceeded = self._quotas.exceeded(bound.by, uid, pods)
        if exceeded is None:
            return
        knowingly, what = exceeded
        if knowingly:
            self.violated(QUOTAS_HELD, f"{'' if bound.by is None else bound.by.name} binds {bound.key}: {what}")
        else:
            self.excused += 1

    def decided(self, process: VirtualProcess, scheduler: SchedulerProcess, pod: Pod, node_name: str) -> None:
        """A scheduler has chosen a node: note what it had heard of that node by then."""
        heard: dict[str, Pod] = scheduler.live.informers.by_kind[Pod].store
        self.checked[KNOWN_BOUND] += 1
        known = heard.get(pod.key)
        if known is not None and known.uid == pod.uid and known.node_name:
            what = f"{process.name} decides for {pod.key} to go to {node_name}, but knows it to be on {known.node_name}"
            self.violated(KNOWN_BOUND, what)
        node: Node | None = scheduler.live.informers.by_kind[Node].store.get(node_name)
        offer = None if node is None else allocatable_of(node.status.allocatable)
        there = frozenset(each.uid for each in heard.values() if each.node_name == node_name)
        self._knowledge[pod.uid, process] = (there, offer)
        if self._devices is not None:
            self._devices.decided(process, scheduler, pod)
        if self._quotas is not None:
            self._quotas.decided(process, scheduler.live.engine, heard.values(), pod)

    def _knowingly(self, by: VirtualProcess, bound: Bound, uid: str, on_node: dict[str, Bound]) -> bool:
        """Whether the sender had to know, when it chose the node, that there is no room for the pod."""
        there, offer = self._knowledge.get((uid, by), (frozenset(), None))
        known = [each for other, each in on_node.items() if each.by is by or other in there]
        return offer is not None and not sum_of(each.asks for each in known).within(offer)

    def _node_changed(self, change: ObjectChange) -> None:
        if change.type == "DELETED":
            self._offered.pop(change.new.name, None)
        else:
            self._offered[change.new.name] = allocatable_of(change.new.decode()["status"]["allocatable"])

    def _volume_changed(self, change: ObjectChange) -> None:
        claim = (change.new.decode()["spec"].get("claimRef") or {}).get("uid")
        before = None if change.old is None else (change.old.decode()["spec"].get("claimRef") or {}).get("uid")
        self.checked[ONE_CLAIM] += 1
        if before and claim != before:
            self.violated(ONE_CLAIM, f"{change.new.name} was given to claim {before} and is now given to {claim}")

    # Others

    def check_nothing_broke(self, failures: list[str]) -> None:
        self.checked[NOTHING_BREAKS] += 1
        for what in failures:
            self.violated(NOTHING_BREAKS, what)
