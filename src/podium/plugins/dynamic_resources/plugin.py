"""Gives pods the devices of their claims: each extension point in a few lines, the search in `placement.devices`.

A claim without devices is given them on the node that is chosen, together with all others of the pod: found in
Filter, counted as in flight from Reserve on, written in PreBind. A claim that has devices limits the nodes; one that no
pod uses and that keeps a pod from its nodes loses its devices in PostFilter. The plugin says nothing of pods without
claims, and without resources that a device class stands behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable, Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from podium.cluster import NodeInfo, Nodes
from podium.config.feature_gates import Gate
from podium.framework import (
    SKIP,
    Cycle,
    DependsOn,
    Diagnosis,
    Handle,
    Interest,
    NodePart,
    Normalizer,
    Plugin,
    PluginError,
    PostFilterResult,
    Scores,
    Status,
    Verdict,
    Write,
)
from podium.framework.answers import NodeFailedError
from podium.framework.gang import GroupFit, GroupRoom
from podium.framework.handle import Effect
from podium.framework.protocols import DeviceUse
from podium.kube import Pod, PodGroup, ResourceClaim, compile_node_selector
from podium.kube.claim_status import ClaimNotReadyError, claims_of_pod, is_reserved_for
from podium.kube.devices import Allocation
from podium.kube.extended_resources import IN_MEMORY, DeviceNeeds
from podium.placement.devices import AllocationError, InvalidPoolsError, allocate
from podium.placement.devices.node_answers import CachedNodeAnswers, SearchTime
from podium.placement.devices.uses import uses_in
from podium.plugins.dynamic_resources.args import DynamicResourcesArgs
from podium.plugins.dynamic_resources.conditions import (
    TIMED_OUT,
    DevicesFailedError,
    device_wait,
    is_overdue,
    is_ready,
    needs_conditions,
)
from podium.plugins.dynamic_resources.explanation import explain_claims
from podium.plugins.dynamic_resources.extended_resources import (
    PodResources,
    claim_of_resources,
    may_be_devices,
)
from podium.plugins.dynamic_resources.hints import interests
from podium.plugins.dynamic_resources.notes import NO_WAY, NOTHING, ClaimNotes, ClaimWay, problem_of_requests
from podium.plugins.dynamic_resources.verdict import NOT_ALLOCATED, ClaimVerdict, has_alternatives, rank, rows_to_search

NAME = "DynamicResources"
NOTHING_TO_FREE = Status.unschedulable("no new claims to deallocate")
DEALLOCATED = Status.unschedulable("deallocation of ResourceClaim completed")
DELETED = Status.unschedulable("deletion of ResourceClaim completed")
GIVEN_BACK = Status.unschedulable("deallocation and deletion of ResourceClaims completed")
STILL_UNSCHEDULABLE = Status.unschedulable("still not schedulable")
UNAVAILABLE = Status.unresolvable("resourceclaim not available on the node")
NO_ALLOCATION = Status.error("claim allocation not found for node")
NOT_FOUND = "not found"
POLL_SECONDS = 5


class DynamicResources(Plugin):
    name = NAME
    trusted = True
    Args = DynamicResourcesArgs
    prepares_in_parallel = True
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    writes = (Write.CLAIMS,)
    normalizer = Normalizer.DEFAULT

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._claims = handle.cluster.objects.resource_claims
        self._uses = uses_in(handle)
        self._answers = CachedNodeAnswers(handle.cluster, self._uses)
        self._by_placement = Gate.TOPOLOGY_AWARE in handle.gates
        talks = handle.rules.device_post_filter_gives_reasons
        self._nothing_to_free = NOTHING_TO_FREE if talks else Status.unschedulable()
        self._still_unschedulable = STILL_UNSCHEDULABLE if talks else Status.unschedulable()

    def interests(self) -> Iterable[Interest]:
        return interests(self._claims.get)

    def answer_key(self, pod: Pod) -> Hashable:
        """Pods that get devices are decided afresh each time: devices are not rows."""
        if pod.spec.resource_claims:
            return None
        names = may_be_devices(pod)
        if not names:
            return ()
        resources = self._uses.resources
        return None if any(map(resources.class_of, names)) else resources.version

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if not pod.spec.resource_claims:
            return None
        try:
            claims_of_pod(pod, self._claims.get)
        except ClaimNotReadyError as error:
            return Status.unresolvable(str(error))
        return None

    def pre_filter(self, cycle: Cycle) -> Status | None:
        cycle.data[NAME] = NOTHING
        pod = cycle.pod
        try:
            claims = claims_of_pod(pod, self._claims.get)
        except ClaimNotReadyError as error:
            return Status.unresolvable(str(error))
        resources = PodResources.of(pod, cycle.facts, self._uses)
        if resources is not None:
            claims.append(claim_of_resources(pod, self._uses))
        if not claims:
            return SKIP
        notes = ClaimNotes(claims, resources)
        for number, claim in enumerate(claims):
            allocation = claim.status.allocation
            terms = None
            if allocation is None:
                problem = self._problem_of(claim, made_here=claim is notes.special)
                if problem is not None:
                    return problem
                notes.missing.append(number)
            elif allocation.node_selector is not None:
                terms = compile_node_selector(allocation.node_selector)
                if terms.error:
                    return Status.error(terms.error)
            notes.nodes.append(terms)
        cycle.data[NAME] = notes
        return None

    def _problem_of(self, claim: ResourceClaim, *, made_here: bool) -> Status | None:
        """Why a claim cannot be given devices by anyone now; what one asks for that is made here, a node will say."""
        if self._uses.is_in_flight(claim):
            return Status.unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        return None if made_here else problem_of_requests(claim, self.handle.cluster.objects.device_classes)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        """All nodes together: what they answered to claims that ask for the same is kept."""
        notes = _noted(cycle)
        if not notes.claims:
            return None
        verdict = ClaimVerdict(len(nodes))
        undecided = self._find_ways(notes, nodes, verdict)
        time = self._search_time()
        for number, way in enumerate(notes.ways):
            if way.answers is not None:
                chosen = undecided == number
                way.answers.refresh(way.claims, time.begin, partial(rows_to_search, cycle, nodes, chosen))
                verdict.take_answers(way.answers, nodes.rows, chosen)
        for number, claim in enumerate(notes.claims):
            terms = notes.nodes[number]
            if claim.status.allocation is None:
                continue
            if not self._is_usable(claim):
                verdict.refuse(UNAVAILABLE, undecided >= 0)
            elif terms is not None:
                verdict.refuse(UNAVAILABLE, (undecided >= 0) & ~nodes.match_node_selector(terms))
        return verdict.verdict()

    def _find_ways(self, notes: ClaimNotes, nodes: Nodes, verdict: ClaimVerdict) -> NDArray[np.int64]:
        """Find the ways in which nodes need devices; which way each node takes, −1 where nothing is needed."""
        special, resources = notes.special, notes.resources
        notes.ways.clear()
        notes.way_of.clear()
        ways = np.zeros(len(nodes), dtype=np.int64)
        if resources is None or special is None:
            notes.ways.append(self._way(notes, None))
            return ways
        everywhere = resources.needs_everywhere(nodes, special)
        if everywhere is not None:
            notes.ways.append(self._way(notes, everywhere))
            return ways
        known: dict[int, int] = {}
        for index in np.flatnonzero(nodes.cluster.present[nodes.rows]).tolist():
            needs = resources.needs_on(nodes.info(index), special, alone=not notes.user_claims)
            if isinstance(needs, Status):
                verdict.refuse_one(needs, index)
                ways[index] = -1
            elif needs is None and not notes.user_claims:
                ways[index] = -1
                notes.way_of[int(nodes.rows[index])] = -1
            else:
                if id(needs) not in known:
                    known[id(needs)] = len(notes.ways)
                    notes.ways.append(self._way(notes, needs))
                ways[index] = known[id(needs)]
                notes.way_of[int(nodes.rows[index])] = known[id(needs)]
        notes.ways.append(NO_WAY)
        return ways

    def _way(self, notes: ClaimNotes, needs: DeviceNeeds | None) -> ClaimWay:
        if not notes.missing:
            return ClaimWay(needs, (), None)
        special = needs.within(notes.special) if needs is not None and notes.special is not None else None
        claims = notes.to_allocate(special)
        return ClaimWay(needs, claims, self._answers.of(claims))

    def _search_time(self) -> SearchTime:
        args: DynamicResourcesArgs = self.args
        return SearchTime(self.handle.clock.now, args.filter_seconds)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        notes = _noted(cycle)
        if not notes.claims:
            return None
        special: ResourceClaim | None = None
        if notes.resources is not None and notes.special is not None:
            needs = notes.resources.needs_on(node, notes.special, alone=not notes.user_claims)
            if isinstance(needs, Status):
                return needs
            if needs is not None:
                special = needs.within(notes.special)
                notes.needs[node.name] = needs
            elif not notes.user_claims:
                return None
        if notes.missing:
            found = self._allocate(notes.to_allocate(special), node)
            if isinstance(found, Status):
                return found
            notes.found[node.name] = found
        if all(self._is_available(notes, number, node) for number in range(len(notes.claims))):
            return None
        notes.found.pop(node.name, None)
        return UNAVAILABLE

    def _is_available(self, notes: ClaimNotes, number: int, node: NodeInfo) -> bool:
        """Whether a claim that has devices can be used on a node."""
        claim, terms = notes.claims[number], notes.nodes[number]
        if claim.status.allocation is None:
            return True
        if terms is not None and not terms.matches(node.labels, node.name):
            return False
        return self._is_usable(claim)

    def _is_usable(self, claim: ResourceClaim) -> bool:
        """Whether the devices of a claim are attached, or may yet be."""
        try:
            ready = is_ready(claim)
        except DevicesFailedError:
            return False
        args: DynamicResourcesArgs = self.args
        return ready or not is_overdue(claim, args.binding_seconds, self.handle.clock.now())

    def _allocate(self, claims: list[ResourceClaim], node: NodeInfo) -> list[Allocation] | Status:
        uses = self._uses
        pools, expired = uses.inventory.pools(node.node), self._search_time().begin()
        try:
            found = allocate(node.node, pools, claims, uses.classes, uses.tally, rules=uses.rules, expired=expired)
        except TimeoutError:
            raise NodeFailedError(f"node {node.name}: timed out trying to allocate devices") from None
        except AllocationError as error:
            raise NodeFailedError(str(error)) from None
        except InvalidPoolsError as error:
            return Status.unresolvable(str(error))
        return NOT_ALLOCATED if found is None else found

    def devices_on(self, cycle: Cycle, node_name: str) -> list[DeviceUse] | None:
        """What the pod's claims have, or would get on a node where it fits."""
        notes: ClaimNotes | None = cycle.data.get(NAME)
        if notes is None or not notes.claims:
            return None
        row = cycle.cluster.row_of.get(node_name, -1)
        found = iter(notes.allocations(row, node_name) or ())
        uses = []
        for claim in notes.claims:
            allocation = claim.status.allocation or next(found, None)
            results = allocation.devices.results if allocation else ()
            uses += [DeviceUse(claim.key, each.request, each.driver, each.pool, each.device) for each in results]
        return uses

    def explain(self, pod: Pod) -> list[str]:
        """What the requests of a pod find on which node, and what would unblock it."""
        return explain_claims(pod, self.handle.cluster, self._uses, self.handle.clock)

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        notes: ClaimNotes | None = cycle.data.get(NAME)
        if notes is None:
            return PostFilterResult(Status.error(NOT_FOUND))
        if not notes.claims:
            return PostFilterResult(self._nothing_to_free)
        for number in self._unavailable(cycle, notes, diagnosis):
            claim = notes.claims[number]
            if claim is notes.special:
                continue
            users = claim.status.reserved_for
            if not users or [user.uid for user in users] == [cycle.pod.uid]:
                self.handle.writer.deallocate_claim(claim)
                return PostFilterResult(DEALLOCATED)
        if notes.special is not None and notes.special.name != IN_MEMORY:
            self.handle.writer.delete_claim(notes.special)
            return PostFilterResult(DELETED)
        return PostFilterResult(self._still_unschedulable)

    def pod_group_post_filter(self, group: PodGroup, _pods: Sequence[Pod], fit: GroupFit) -> GroupRoom:
        """Have the members that found no node give back claims; before Kubernetes 1.37, single pods only do."""
        if not self.handle.rules.pod_groups_are_queued or (self._by_placement and group.spec.scheduling_constraints):
            return GroupRoom(Status.unschedulable())
        for cycle, diagnosis in fit.failed:
            if NAME in cycle.data:
                self.post_filter(cycle, diagnosis)
        return GroupRoom(GIVEN_BACK)

    def _unavailable(self, cycle: Cycle, notes: ClaimNotes, diagnosis: Diagnosis) -> list[int]:
        """The claims that kept the pod from nodes which nothing else kept it from."""
        found: dict[int, None] = {}
        for status, rows in diagnosis.statuses.groups():
            if status.plugin == NAME and status.reasons == UNAVAILABLE.reasons:
                for row in rows.tolist():
                    node = NodeInfo(cycle.cluster, row)
                    found |= {
                        number: None
                        for number in range(len(notes.claims))
                        if not self._is_available(notes, number, node)
                    }
        return list(found)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        notes = _noted(cycle)
        if not notes.missing or not any(map(has_alternatives, notes.claims)):
            return 0
        ranks = np.zeros(len(nodes), dtype=np.int64)
        for index, row in enumerate(nodes.rows.tolist()):
            found = notes.allocations(row, cycle.cluster.names[row])
            if found is not None:
                ranks[index] = rank(notes.claims, found)
        return ranks

    def reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        notes: ClaimNotes | None = cycle.data.get(NAME)
        if notes is None:
            return Status.error(NOT_FOUND)
        if not notes.missing:
            return None
        row = cycle.cluster.row_of[node_name]
        found = notes.allocations(row, node_name)
        way = notes.way(row)
        if way is not None and way.needs is not None:
            notes.needs.setdefault(node_name, way.needs)
        if found is None:
            return None if notes.only_special_is_missing else NO_ALLOCATION
        for number, allocation in zip(notes.missing, found, strict=True):
            notes.given[number] = allocation
            self._uses.begin(notes.claims[number], allocation)
        return None

    def unreserve(self, cycle: Cycle, _node_name: str) -> None:
        notes: ClaimNotes | None = cycle.data.get(NAME)
        if notes is not None:
            given, notes.given = notes.given, {}
            self._take_back(cycle.pod, notes, given)

    def _take_back(self, pod: Pod, notes: ClaimNotes, given: Iterable[int]) -> None:
        """Count devices as free that claims will not be given, and release what was written."""
        for number, claim in enumerate(notes.claims):
            if number in given:
                self._uses.end(claim)
            if claim is notes.special:
                made = self._uses.claim_made_for(pod)
                if made is not None:
                    self.handle.writer.delete_claim(made)
                continue
            latest = self._claims.get(claim.key)
            if latest is not None and latest.uid == claim.uid and is_reserved_for(latest, pod):
                self.handle.writer.release_claim(latest, pod)

    def pre_bind_preflight(self, cycle: Cycle, _node_name: str) -> Status | None:
        notes: ClaimNotes | None = cycle.data.get(NAME)
        if notes is None:
            return Status.error(NOT_FOUND)
        return None if notes.claims else SKIP

    def pre_bind(self, cycle: Cycle, node_name: str) -> Effect:
        notes = _noted(cycle)
        unwritten = [number for number, claim in enumerate(notes.claims) if not is_reserved_for(claim, cycle.pod)]
        for position, number in enumerate(unwritten):
            effect = self._write(cycle.pod, notes, number, node_name)
            if isinstance(effect, Awaitable):
                return self._write_on(cycle, notes, node_name, effect, unwritten[position:])
            if effect is not None:
                return effect
        if unwritten or not any(map(needs_conditions, notes.claims)):
            return None
        return self._see_ready(cycle.pod, notes, node_name)

    def _write(self, pod: Pod, notes: ClaimNotes, number: int, node_name: str) -> Effect:
        """Write what a claim was given, and that the pod uses it."""
        claim, given = notes.claims[number], notes.given.get(number)
        if claim is not notes.special:
            return self.handle.writer.reserve_claim(claim, given, pod)
        if given is None:
            return None  # the node offers the resources itself
        needs = notes.needs[node_name]
        if not needs.mappings:
            missing = "nil or empty request mappings, no update of pod"
            return Status.error(f"{missing} {pod.key} ExtendedResourceClaimStatus")
        return self.handle.writer.create_claim(needs.within(claim), given, pod, needs.mappings)

    async def _write_on(
        self, cycle: Cycle, notes: ClaimNotes, node_name: str, effect: Awaitable[Status | None], unwritten: list[int]
    ) -> Status | None:
        """Write the claims one after the other, and wait for devices that have to be made ready.

        A write that is under way cannot be stopped: where the binding is called off meanwhile, what claims are given
        counts as taken until it is known what became of it.
        """
        writing = asyncio.ensure_future(self._write_all(cycle, notes, node_name, effect, unwritten))
        try:
            status = await asyncio.shield(writing)
        except asyncio.CancelledError:
            given, notes.given = notes.given, {}
            writing.add_done_callback(lambda _done: self._take_back(cycle.pod, notes, given))
            raise
        return status or await self._see_ready(cycle.pod, notes, node_name)

    async def _write_all(
        self, cycle: Cycle, notes: ClaimNotes, node_name: str, effect: Awaitable[Status | None], unwritten: list[int]
    ) -> Status | None:
        """Write the claims, the first of which is being written."""
        status = await effect
        for number in unwritten[1:]:
            if status is not None:
                return status
            effect_or_status = self._write(cycle.pod, notes, number, node_name)
            status = await effect_or_status if isinstance(effect_or_status, Awaitable) else effect_or_status
        if status is None and notes.special is not None:
            self._uses.end(notes.special)  # the claim that was created counts
        return status

    async def _see_ready(self, pod: Pod, notes: ClaimNotes, node_name: str) -> Status | None:
        """Wait until all devices are attached."""
        if not any(map(needs_conditions, self._latest_claims(pod, notes))):
            return None
        waits, clock = self.handle.device_waits, self.handle.clock
        waits.on_begin(pod, node_name)
        began = clock.now()
        status = await self._attached(pod, notes)
        latest = self._latest_claims(pod, notes)
        waits.on_end(device_wait(self.handle.runtime.name, latest, status, clock.now() - began))
        return status

    async def _attached(self, pod: Pod, notes: ClaimNotes) -> Status | None:
        args: DynamicResourcesArgs = self.args
        end = self.handle.clock.now() + args.binding_seconds
        while True:
            try:
                waiting = next((claim for claim in self._latest_claims(pod, notes) if not is_ready(claim)), None)
            except DevicesFailedError as error:
                return Status.error(str(error))
            if waiting is None:
                return None
            now = self.handle.clock.now()
            if is_overdue(waiting, args.binding_seconds, now):
                return Status.error(f"{TIMED_OUT}: claim={waiting.name}")
            if now >= end:
                return Status.error(f"{TIMED_OUT}: context deadline exceeded")
            await asyncio.sleep(POLL_SECONDS)

    def _latest_claims(self, pod: Pod, notes: ClaimNotes) -> list[ResourceClaim]:
        """The claims as they are now, without one that the node made unnecessary."""
        claims = []
        for number, claim in enumerate(notes.claims):
            if claim is not notes.special:
                claims.append(self._claims.get(claim.key) or claim)
            elif number in notes.given:
                claims.append(self._uses.claim_made_for(pod) or claim)
        return claims


def _noted(cycle: Cycle) -> ClaimNotes:
    """PreFilter must have been here; a profile that disables it there cannot use the plugin elsewhere."""
    notes: ClaimNotes | None = cycle.data.get(NAME)
    if notes is None:
        raise PluginError(NOT_FOUND)
    return notes
