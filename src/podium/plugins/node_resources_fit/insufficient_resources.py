"""Decides what of a pod's requests a node is short of, and words it: "Insufficient cpu", "Too many pods".

    too many pods:   pods on the node + 1 > allocatable pods
    short of r:      request > allocatable − requested, for every resource the pod asks for

All that a node is short of is reported together, so the verdict on a node is a set of bits: bit 0 for too many pods,
one bit per resource, and the highest for "never", when a request exceeds all that the node could ever offer: evicting
pods will not help there. Too many pods is never "never".

Of a resource that a device class stands behind, a node that offers none is not short: its devices are looked at by
DynamicResources.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Final

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.cluster.resources import ALLOWED_PODS, POD_COUNT
from podium.framework import Status, Verdict
from podium.framework.diagnosis import Codes
from podium.kube import Pod
from podium.kube.extended_resources import wanted_names
from podium.kube.requests import fit_requests, is_extended_resource_name
from podium.placement.resource_usage import LINES_OF

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient {}"

NO_NAMES: Final[Set[str]] = frozenset()
_CORE = ("cpu", "memory", "ephemeral-storage")
_TOO_MANY = 1
_BITS = 62
"""How many bits a code of a Verdict holds, sign aside."""


class Wants:
    """What a pod asks for, in the order in which shortages are reported, and the statuses made from that so far."""

    __slots__ = ("_never", "_statuses", "amounts", "may_be_devices")

    def __init__(self, amounts: tuple[tuple[str, int], ...]) -> None:
        self.amounts = amounts
        self.may_be_devices = wanted_names(dict(amounts))
        """The resources that device classes may stand behind."""
        self._never = 2 << len(amounts)
        self._statuses: dict[int, Status] = {}

    @staticmethod
    def of(pod: Pod, ignored: Collection[str], ignored_groups: Collection[str]) -> Wants:
        """The pod's requests without the extended resources that the arguments ignore."""
        requests = {name: amount for name, amount in fit_requests(pod).items() if amount}
        scalars = sorted(
            name
            for name in requests.keys() - set(_CORE)
            if not (is_extended_resource_name(name) and (name in ignored or name.partition("/")[0] in ignored_groups))
        )
        core = [name for name in _CORE if name in requests]
        return Wants(tuple((name, requests[name]) for name in (*core, *scalars)))

    def judge(self, nodes: Nodes, devices: Set[str] = NO_NAMES) -> Verdict | None:
        """What each node is short of; None when all have room. `devices`: the resources that classes stand behind."""
        if len(self.amounts) + 2 > _BITS:
            return self._judge_one_by_one(nodes, devices)
        codes: Codes | None = None
        too_many = nodes.pod_count >= nodes.allowed_pods
        if too_many.any():
            codes = too_many.astype(np.int64)
        for number, (resource, amount) in enumerate(self.amounts, start=1):
            allocatable = nodes.allocatable(resource)
            short = allocatable - nodes.requested(resource) < amount
            if resource in devices:
                short &= allocatable > 0
            if short.any():
                if codes is None:
                    codes = np.zeros(len(nodes), dtype=np.int64)
                # Not through a mask: where the nodes that are short lie scattered, that takes ten times as long.
                codes |= short.astype(np.int64) << number
                never = short & (allocatable < amount)
                if never.any():
                    codes |= never * self._never
        return None if codes is None else Verdict(codes, self.status)

    def judge_row(self, cluster: Cluster, row: int, devices: Set[str] = NO_NAMES) -> int:
        """The code for one row: the same bits, from plain integers."""
        columns = cluster.resources
        numbers = columns.on(row)
        code = _TOO_MANY if numbers[POD_COUNT] >= numbers[ALLOWED_PODS] else 0
        bit = 1
        for resource, amount in self.amounts:
            bit <<= 1
            lines = LINES_OF.get(resource)
            if lines is None:
                offered, used = columns.scalar_on(resource, row)
            else:
                offered, used = numbers[lines[0]], numbers[lines[1]]
            if offered - used < amount and (offered > 0 or resource not in devices):
                code |= bit | self._never if offered < amount else bit
        return code

    def status(self, code: int) -> Status:
        status = self._statuses.get(code)
        if status is None:
            reasons = [TOO_MANY_PODS] if code & _TOO_MANY else []
            for number, (resource, _amount) in enumerate(self.amounts, start=1):
                if code >> number & 1:
                    reasons.append(INSUFFICIENT.format(resource))
            make = Status.unresolvable if code & self._never else Status.unschedulable
            status = self._statuses[code] = make(*reasons)
        return status

    def _judge_one_by_one(self, nodes: Nodes, devices: Set[str]) -> Verdict:
        """For pods with more resources than a code has bits: number the sets of shortages that occur."""
        found: dict[int, int] = {0: 0}
        rows = nodes.rows.tolist()
        codes = [found.setdefault(self.judge_row(nodes.cluster, row, devices), len(found)) for row in rows]
        sets = list(found)
        return Verdict(np.array(codes, dtype=np.int64), lambda number: self.status(sets[number]))
