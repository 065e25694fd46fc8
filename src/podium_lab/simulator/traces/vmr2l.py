"""Reads instances of VMR2L: the machines of a data centre and the VMs on them, as the authors publish them (JSON).

    cluster_list[].host_info[]      node_id, status, node_cpu, node_mem_mb, numa[], rack_id
    cluster_list[].vm_instance[]    instance_id, instance_type, host_id, numa[] (node, cpu, mem_mb)
    cluster_list[].other_requirement.deployment_set[]    granularity (host or rack), data: VMs that stay apart

As a benchmark for placement the VMs arrive one by one, in an order of the seed, on empty machines; or they start where
the file has them. Each VM is a pod that asks for its cores and memory. A deployment set is an anti-affinity of its VMs
by host or by rack. NUMA nodes are added up: what a VM needs of one of them is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, field

from podium.kube.meta import Amount
from podium.kube.node import Taint
from podium_lab.simulator.distributions import generator
from podium_lab.simulator.pods import FOREVER, PodArrival, PodTemplate, plain_spec
from podium_lab.simulator.scenario import ScenarioError, Vmr2lPods

LARGEST = 200_000_000
APART = 0.01
"""Seconds between arrivals."""
HOST, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/rack"
TOPOLOGIES = {"host": HOST, "rack": RACK}
SET_LABEL = "podium.dev/vmr2l-set-{}"
ACTIVE = "ACTIVE"
MOST_PODS = 1000
"""Pods of a machine, which the files do not limit."""

Whole = Annotated[float, Meta(ge=0, le=1e12)]


class _NumaPart(msgspec.Struct):
    cpu: Whole = 0
    mem_mb: Whole = 0


class _Host(msgspec.Struct):
    node_id: str
    node_cpu: Whole
    node_mem_mb: Whole
    status: str = ACTIVE
    rack_id: str | int = ""


class _Machine(msgspec.Struct):
    instance_id: str
    instance_type: str = ""
    host_id: str = ""
    numa: list[_NumaPart] = field(default_factory=list)


class _DeploymentSet(msgspec.Struct):
    granularity: str
    data: list[str]


class _Requirement(msgspec.Struct):
    deployment_set: list[_DeploymentSet] = field(default_factory=list)


class _Cluster(msgspec.Struct):
    host_info: list[_Host]
    vm_instance: list[_Machine] = field(default_factory=list)
    other_requirement: _Requirement = field(default_factory=_Requirement)


class Vmr2lInstance(msgspec.Struct):
    """One file: what it says of machines and VMs, other fields left out."""

    cluster_list: list[_Cluster]


class MachineNode(msgspec.Struct, frozen=True):
    """A physical machine as a node."""

    name: str
    allocatable: dict[str, Amount]
    labels: dict[str, str]
    taints: tuple[Taint, ...]


def machine_nodes(path: Path) -> list[MachineNode]:
    """The machines of all clusters; one that is not active takes no VMs."""
    found = []
    for cluster in read_instance(path).cluster_list:
        for host in cluster.host_info:
            taints = () if host.status == ACTIVE else (Taint(key="podium.dev/vmr2l-disabled", effect="NoSchedule"),)
            offered: dict[str, Amount] = {
                "cpu": f"{round(1000 * host.node_cpu)}m",
                "memory": f"{round(host.node_mem_mb)}Mi",
                "pods": MOST_PODS,
            }
            labels = {RACK: _label(str(host.rack_id))} if host.rack_id != "" else {}
            found.append(MachineNode(_name(host.node_id), offered, labels, taints))
    return found


def arrivals(given: Vmr2lPods, path: Path, seed: int) -> Iterator[PodArrival]:
    """The VMs as pods: all where they are, or one by one."""
    found = [
        (_name(machine.instance_id), _name(machine.host_id) if machine.host_id else "", template)
        for cluster in read_instance(path).cluster_list
        for machine, template in _templates(cluster, given.sets)
    ]
    if given.arrive == "placed":
        yield from (PodArrival(0.0, name, template, FOREVER, host) for name, host, template in found)
        return
    order = generator(seed, "arrivals").permutation(len(found)).tolist()
    for number, index in enumerate(order):
        name, _host, template = found[index]
        yield PodArrival(APART * (number + 1), name, template, FOREVER)


def _templates(cluster: _Cluster, sets: bool) -> Iterator[tuple[_Machine, PodTemplate]]:
    sets_of: dict[str, list[tuple[str, str]]] = {}
    if sets:
        for number, each in enumerate(cluster.other_requirement.deployment_set):
            for name in each.data:
                sets_of.setdefault(name, []).append((SET_LABEL.format(number), TOPOLOGIES[each.granularity]))
    known: dict[tuple[object, ...], PodTemplate] = {}
    for machine in cluster.vm_instance:
        cpu = round(1000 * sum(part.cpu for part in machine.numa))
        memory = round(sum(part.mem_mb for part in machine.numa))
        apart = tuple(sets_of.get(machine.instance_id, ()))
        key = machine.instance_type, cpu, memory, apart
        template = known.get(key)
        if template is None:
            template = known[key] = _template(machine.instance_type, cpu, memory, apart)
        yield machine, template


def _template(kind: str, cpu: int, memory: int, apart: tuple[tuple[str, str], ...]) -> PodTemplate:
    requests: dict[str, Amount] = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    terms = [
        {"labelSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]}, "topologyKey": topology}
        for label, topology in apart
    ]
    further = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    labels = {label: "" for label, _ in apart}
    return PodTemplate(plain_spec(requests, further=further if terms else None), labels=labels, shape=kind)


@lru_cache(maxsize=4)
def read_instance(path: Path) -> Vmr2lInstance:
    """A file; raises ScenarioError with what is wrong with it."""
    if path.stat().st_size > LARGEST:
        raise ScenarioError(f"{path}: {path.stat().st_size:,} bytes; an instance has at most {LARGEST:,}")
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Vmr2lInstance)
    except msgspec.DecodeError as error:
        raise ScenarioError(f"{path}: is no instance of VMR2L: {error}") from None
    hosts = [_name(host.node_id) for cluster in found.cluster_list for host in cluster.host_info]
    names = [machine.instance_id for cluster in found.cluster_list for machine in cluster.vm_instance]
    for what, named in (("machines", hosts), ("VMs", [_name(each) for each in names])):
        if len(set(named)) < len(named):
            raise ScenarioError(f"{path}: two {what} have one name")
    if not hosts:
        raise ScenarioError(f"{path}: has no machines; expected cluster_list[].host_info")
    known, there = set(names), set(hosts)
    for cluster in found.cluster_list:
        for each in cluster.other_requirement.deployment_set:
            if each.granularity not in TOPOLOGIES:
                raise ScenarioError(f'{path}: granularity "{each.granularity}": expected host or rack')
            if unknown := [name for name in each.data if name not in known]:
                raise ScenarioError(f'{path}: a deployment set names "{unknown[0]}", and there is no such VM')
        for machine in cluster.vm_instance:
            if machine.host_id and _name(machine.host_id) not in there:
                raise ScenarioError(
                    f'{path}: VM "{machine.instance_id}" is on "{machine.host_id}", which is no machine'
                )
    return found


def _name(text: str) -> str:
    """What Kubernetes lets an object be called.

    >>> _name("pm_1113")
    'pm-1113'
    """
    return "".join(each if each.isalnum() or each in ".-" else "-" for each in text.lower()).strip(".-") or "x"


def _label(text: str) -> str:
    return text[:63] if text.isascii() else _name(text)[:63]
