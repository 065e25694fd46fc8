"""Makes the nodes of a scenario: from a template, a kubectl dump, or the node list of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from kubecel.quantity import units
from podium.config.field import FieldPath
from podium.kube import Node, decode_documents
from podium.kube.meta import Amount, Condition, ObjectMeta
from podium.kube.node import NodeSpec, NodeStatus, Taint
from podium_lab.simulator.csv_rows import CsvRow, read_rows
from podium_lab.simulator.distributions import generator, sampler
from podium_lab.simulator.reading import LoadedScenario, Source
from podium_lab.simulator.rules import listed
from podium_lab.simulator.scenario import NodeGroup, ScenarioError
from podium_lab.simulator.traces import vmr2l
from podium_plugins.gpu.request import COUNT, MILLI, MODEL, WHOLE

READY = (Condition(type="Ready", status="True"),)
HOSTNAME = "kubernetes.io/hostname"
OPENB_PODS = 1001
HOST_MEMORY = 10**6
"""KiB in one unit of memory of the QoS experiments."""


def scenario_nodes(loaded: LoadedScenario) -> list[Node]:
    """The nodes that there are at the start; raises ScenarioError where there is none, or two have one name."""
    nodes: dict[str, Node] = {}
    for path, group in listed(loaded.scenario.nodes, FieldPath(("nodes",))):
        for node in make_nodes(group, loaded.source, len(nodes)):
            name = node.metadata.name
            if name in nodes:
                problem = f'two nodes are called "{name}"; write another name, or leave one out'
                raise ScenarioError(f"{loaded.position_of(*path.steps)}: {path}: {problem}")
            nodes[name] = node
    if not nodes:
        raise ScenarioError(f"{loaded.position_of('nodes')}: nodes: expected at least one node")
    return list(nodes.values())


def node_latencies(loaded: LoadedScenario, seed: int) -> dict[str, float]:
    """Milliseconds from each node to the users, by name, of the nodes at the start whose group has a latency."""
    rng = generator(seed, "latencies")
    found: dict[str, float] = {}
    first = 0
    for _, group in listed(loaded.scenario.nodes, FieldPath(("nodes",))):
        nodes = make_nodes(group, loaded.source, first)
        first += len(nodes)
        if group.latency is not None:
            draw = sampler(group.latency, rng)
            found |= {node.metadata.name: draw() for node in nodes}
    return found


def make_nodes(group: NodeGroup, source: Source, first: int = 0) -> list[Node]:
    """The nodes of a group; `first` is the number of the first where they are numbered."""
    if group.openb is not None:
        return list(openb_nodes(source.find(group.openb)))
    if group.hosts is not None:
        return list(_hosts(source.find(group.hosts)))
    if group.vmr2l is not None:
        machines = vmr2l.machine_nodes(source.find(group.vmr2l))
        return [plain_node(each.name, each.allocatable, each.labels, each.taints) for each in machines]
    if group.file is not None:
        return _dumped(source.find(group.file))
    return [_templated(group, index) for index in range(first, first + (group.count or 0))]


def gpu_capacity(nodes: Iterable[Node]) -> int:
    """The GPUs of all nodes, in thousandths."""
    return WHOLE * sum(units(node.status.allocatable.get(COUNT, 0)) for node in nodes)


def plain_node(
    name: str,
    allocatable: Mapping[str, Amount],
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
) -> Node:
    """A node that is ready and offers all it has."""
    return Node(
        metadata=ObjectMeta(name=name, uid=f"node/{name}", labels={HOSTNAME: name, **(labels or {})}),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable=dict(allocatable), capacity=dict(allocatable), conditions=READY),
    )


def _templated(group: NodeGroup, index: int) -> Node:
    def fill(text: str) -> str:
        return text.replace("{index}", str(index)).replace("{zone}", str(index % group.zones))

    labels = {fill(key): fill(value) for key, value in group.labels.items()}
    if group.zones > 1 and not group.labels:
        labels["topology.kubernetes.io/zone"] = f"zone-{index % group.zones}"
    offered = {"pods": 110, **group.allocatable}
    return plain_node(fill(group.name), offered, labels, tuple(msgspec.convert(group.taints, list[Taint])))


def _dumped(path: Path) -> list[Node]:
    objects = decode_documents(path.read_text(encoding="utf-8-sig"), str(path)).objects
    nodes = [each for each in objects if isinstance(each, Node)]
    if not nodes:
        raise ScenarioError(f"{path}: has no nodes; write it with kubectl get nodes -o yaml")
    return nodes


@lru_cache(maxsize=8)
def openb_nodes(path: Path) -> tuple[Node, ...]:
    def node(row: CsvRow) -> Node:
        offered: dict[str, Amount] = {
            "cpu": f"{row.whole('cpu_milli')}m",
            "memory": f"{row.whole('memory_mib')}Mi",
            "pods": OPENB_PODS,
        }
        gpus, labels = row.whole("gpu", most=64), {}
        if gpus:
            offered |= {COUNT: gpus, MILLI: gpus * WHOLE}
            labels[MODEL] = row.required("model")
        return plain_node(row.required("sn"), offered, labels)

    return tuple(read_rows(path, node, required=("sn", "cpu_milli", "memory_mib", "gpu", "model")))


@lru_cache(maxsize=8)
def _hosts(path: Path) -> tuple[Node, ...]:
    def node(row: CsvRow) -> Node:
        offered: dict[str, Amount] = {
            "cpu": f"{round(1000 * row.number('cpu'))}m",
            "memory": f"{round(HOST_MEMORY * row.number('ram'))}Ki",
            "pods": 110,
        }
        return plain_node(row.required("host"), offered)

    return tuple(read_rows(path, node, required=("host", "cpu", "ram")))
