"""Writes `/metrics/resources`: what every pod requests and is limited to, one line for each resource.

Kept apart from `/metrics` because it grows with the cluster, and shown by the leader only, so that a cluster's numbers
are there once. It is written piece by piece: at 50,000 pods the whole of it is seconds of work, and the scheduler has
other things to do. As in kube-scheduler, a pod that has ended on its node counts for nothing, and zeros are left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice

from kubecel.quantity import NANO
from podium.kube import Pod
from podium.kube.requests import Nanos, exact_limits, exact_requests

PIECE = 100
"""Pods to a piece: about a millisecond."""

_REQUEST = "kube_pod_resource_request"
_LIMIT = "kube_pod_resource_limit"
_TEXTS = {
    _REQUEST: "What pods request, by resource, as scheduler and kubelet count it.",
    _LIMIT: "What pods are limited to, by resource, as scheduler and kubelet count it.",
}
_UNITS = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}
_ENDED = ("Succeeded", "Failed")


async def resource_metrics(pods: Callable[[], Iterable[Pod]], leads: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The text in pieces; nothing when this process does not lead."""
    if not leads():
        return
    counted = [pod for pod in pods() if not (pod.node_name and pod.status.phase in _ENDED)]
    for name, amounts_of in ((_REQUEST, exact_requests), (_LIMIT, exact_limits)):
        head = f"# HELP {name} {_TEXTS[name]}\n# TYPE {name} gauge\n"
        rest = iter(counted)
        while piece := list(islice(rest, PIECE)):
            text = "".join(line for pod in piece for line in _lines(name, pod, amounts_of(pod)))
            if text:
                yield (head + text).encode()
                head = ""


def _lines(name: str, pod: Pod, amounts: Nanos) -> Iterator[str]:
    priority = "" if pod.spec.priority is None else pod.spec.priority
    about = (
        f'{name}{{namespace="{pod.namespace}",pod="{pod.name}",node="{pod.node_name}",'
        f'scheduler="{_escaped(pod.spec.scheduler_name)}",priority="{priority}"'
    )
    for resource, amount in amounts.items():
        if amount:
            yield f'{about},resource="{resource}",unit="{unit_of(resource)}"}} {amount / NANO}\n'


def _escaped(name: str) -> str:
    """Of the names, only a scheduler's may hold anything."""
    return name.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def unit_of(resource: str) -> str:
    if resource.startswith("hugepages-"):
        return "bytes"
    if resource.startswith("attachable-volumes-"):
        return "integer"
    return _UNITS.get(resource, "")
