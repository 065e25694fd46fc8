"""Says what is on a node, from the API's store: its resources, its taints, and its pods with what they ask for."""

from collections import Counter
from typing import Final

from kubecel.quantity import NANO, QuantityError, format_nano, milli, parse
from podium.kube import Node, Pod, decode_json
from podium.kube.printable import printable
from podium.kube.requests import CPU, PODS, pod_requests
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import NODE, POD
from podium_cluster.up.live_view.nodes import percent
from podium_cluster.up.screen import counted

_NODE_NAME: Final = POD.fields.names.index("spec.nodeName")
_BINARY: Final = ("memory", "ephemeral-storage")


def describe_node(api: EmbeddedApi, name: str) -> str:
    """The text of the node's page."""
    stored = api.store.get(NODE, None, name)
    if stored is None:
        return f"node {name} is gone"
    node = decode_json(Node, stored.raw)
    pods = [decode_json(Pod, each.raw) for each in api.store.items(POD) if each.fields[_NODE_NAME] == name]
    pods = [pod for pod in pods if not pod.finished]
    requested = {pod.key: pod_requests(pod) for pod in pods}
    used: Counter[str] = Counter()
    for requests in requested.values():
        used.update(requests)
    used[PODS] = len(pods)
    lines = [*_facts(node), ""]
    for resource, amount in node.status.allocatable.items():
        lines.append(_resource(resource, used[resource], str(amount)))
    lines += ["", counted(len(pods), "pod")]
    for pod in sorted(pods, key=lambda pod: pod.key):
        amounts = ", ".join(
            f"{resource} {_amount(resource, each)}" for resource, each in requested[pod.key].items() if each
        )
        lines.append(f"  {pod.key}  {pod.status.phase}  {amounts or 'asks for nothing'}")
    return "\n".join(map(printable, lines))


def _facts(node: Node) -> list[str]:
    facts = [f"{key.rpartition('/')[2]}: {value}" for key, value in sorted(node.metadata.labels.items())]
    facts += [f"taint {taint.key}={taint.value}:{taint.effect}" for taint in node.spec.taints]
    if node.spec.unschedulable:
        facts.append("cordoned")
    return facts


def _resource(name: str, used: int, allocatable: str) -> str:
    try:
        whole = milli(allocatable) if name == CPU else parse(allocatable) // NANO
    except QuantityError:
        whole = 0
    share = f"  {percent(used / whole)}" if whole > 0 else ""
    return f"{name}: {_amount(name, used)} of {allocatable} asked for{share}"


def _amount(resource: str, amount: int) -> str:
    nano = amount * (NANO // 1000 if resource == CPU else NANO)
    return format_nano(nano, binary=resource in _BINARY or resource.startswith("hugepages-"))
