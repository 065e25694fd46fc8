"""A crowd of pods that exactly fills its nodes, and an honest count of where they ended up.

The fit is exact on purpose: after a fault all pods can be bound only if no room is lost to a pod that is believed to be
somewhere it is not, and a node that is believed emptier than it is shows as overfull. The count asks the API server
alone, its objects and its audit log; nothing that Podium says about itself is taken for true.
"""

import time
from collections import Counter
from collections.abc import Callable

from tools.testbed import Component, ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.audit import bindings
from tools.testbed.objects import make_pod

NODES = 50
CPU_OF_A_POD = 100
MEMORY_OF_A_POD = 64


def create_nodes(plane: ControlPlane, room_for: int) -> None:
    """Fifty nodes with room for so many pods in all."""
    each, rest = divmod(room_for, NODES)
    assert not rest, f"{room_for} pods cannot fill {NODES} nodes evenly"
    room = {"cpu": f"{each * CPU_OF_A_POD}m", "memory": f"{each * MEMORY_OF_A_POD}Mi", "pods": str(each + 10)}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    plane.client.create_all(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number:02}"}, "status": status}
        for number in range(NODES)
    )


def create_pods(plane: ControlPlane, count: int, name: str = "pod") -> None:
    requests = {"cpu": f"{CPU_OF_A_POD}m", "memory": f"{MEMORY_OF_A_POD}Mi"}
    container = {"name": "main", "image": "image", "resources": {"requests": requests}}
    plane.client.create_all(make_pod(f"{name}-{number:04}", containers=[container]) for number in range(count))


def until(holds: Callable[[], bool], what: str, *components: Component, timeout: float = 60.0) -> None:
    """Wait until `holds()`; what the components said last is in the error if it never does."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            logs = "\n".join(f"--- {component.name}\n{component.log_tail(6000)}" for component in components)
            raise TimeoutError(f"not after {timeout:.0f} s: {what}\n{logs}")
        time.sleep(0.1)


def until_bound(plane: ControlPlane, count: int, *components: Component, timeout: float = 60.0) -> None:
    """Wait until the API server has bound so many pods since it was first started."""

    def enough() -> bool:
        return sum(binding.succeeded for binding in bindings(plane.audit_log)) >= count

    until(enough, f"{count} pods are bound", *components, timeout=timeout)


def until_all_bound(plane: ControlPlane, *components: Component, surplus: int = 0, timeout: float = 90.0) -> None:
    """Wait until no more than `surplus` pods are without a node."""

    def enough() -> bool:
        return len(plane.client.list("Pod", field_selector="spec.nodeName=")) <= surplus

    until(enough, f"all but {surplus} pods are bound", *components, timeout=timeout)


def assert_well_placed(plane: ControlPlane, count: int, *, surplus: int = 0, audit_complete: bool = True) -> None:
    """Of `count` pods all but `surplus` have a node, each was bound once, and no node is over its allocatable.

    An API server that was killed may have bound a pod and not have written it down; then `audit_complete` is false.
    """
    pods = plane.client.list("Pod")
    assert len(pods) == count, "pods were lost"
    placed = {_key(pod): pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]}
    assert len(placed) == count - surplus
    _assert_no_node_is_overfull(plane, pods)
    asked = bindings(plane.audit_log)
    succeeded = [binding for binding in asked if binding.succeeded]
    twice = [pod for pod, times in Counter(binding.pod for binding in succeeded).items() if times > 1]
    assert not twice, f"bound more than once: {twice}"
    assert {binding.pod: binding.node for binding in succeeded}.items() <= placed.items()
    if audit_complete:  # a request whose asker went away meanwhile was carried out and is not noted as a success
        assert placed.items() <= {(binding.pod, binding.node) for binding in asked}, "nobody bound these pods"


def _assert_no_node_is_overfull(plane: ControlPlane, pods: list[Object]) -> None:
    on_node = Counter(pod["spec"].get("nodeName") for pod in pods)
    for node in plane.client.list("Node"):
        name, room = node["metadata"]["name"], node["status"]["allocatable"]
        cpu = int(room["cpu"][:-1]) if room["cpu"].endswith("m") else int(room["cpu"]) * 1000
        memory = int(room["memory"].removesuffix("Mi"))
        most = min(cpu // CPU_OF_A_POD, memory // MEMORY_OF_A_POD, int(room["pods"]))
        assert on_node[name] <= most, f"{name} has room for {most} pods and holds {on_node[name]}"


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
