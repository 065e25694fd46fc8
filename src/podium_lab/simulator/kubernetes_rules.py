"""Checks the pods and nodes that a scenario describes by kube-apiserver's rules: fields, names, labels, resources.

What kube-apiserver would refuse would be simulated in silence otherwise: a field of a pod's spec with a typo constrains
nothing, and no node offers `cpus`. The rules are those of the embedded API. Where requests are drawn, one draw stands
for all, because rules depend on names and not on amounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from podium import packages
from podium.config.field import FieldPath, Step
from podium.config.problems import did_you_mean
from podium.config.strict import Mistake
from podium.kube.meta import Amount
from podium.kube.node import Taint
from podium.kube.pod import PodSpec
from podium_lab.simulator.scenario import Distribution, Generated, NodeGroup, PodShape, Varying

RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
ORDINARY = frozenset(("cpu", "memory"))
_STEP = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")
_CONTAINER = "spec.containers[0].resources."


def shape_mistakes(shape: PodShape, path: FieldPath) -> Iterator[Mistake]:
    """What kube-apiserver would say of the pods of a shape; `path` leads to the shape."""
    if not (shape.labels or shape.annotations or shape.spec or shape.limits) and set(shape.requests) <= ORDINARY:
        return  # nothing that could be refused, and the rules take a moment to load
    requests, limits = _some(shape.requests), _some(shape.limits)
    for name in [each for each in requests if "/" in each and each not in limits]:
        limits[name] = requests[name]  # the simulated cluster overcommits nothing else
    for name in [each for each in limits if _drawn(shape.limits, each) or _drawn(shape.requests, each)]:
        limits[name] = requests.get(name, limits[name])
    container = {"name": "main", "image": "main", "resources": {"requests": requests, "limits": limits}}
    spec = {"containers": [container], **shape.spec}
    metadata = {"name": "pod", "namespace": "default", "labels": shape.labels, "annotations": shape.annotations}
    for kind in ("requests", "limits"):
        yield from _unknown_resources(getattr(shape, kind), path.child(kind))
    for field, message in _refused("Pod", {"metadata": metadata, "spec": spec}):
        inner = field.removeprefix(_CONTAINER) if "containers" not in shape.spec else field
        if "standard resource" not in message:
            yield _mistake(path, inner.removeprefix("metadata."), message)


def pod_name_mistakes(generate: Generated, path: FieldPath) -> Iterator[Mistake]:
    """What kube-apiserver would say of the names of generated pods and of their namespace."""
    from kubecel.names import dns_label_errors, dns_subdomain_errors

    for name, errors in (
        ("name", dns_subdomain_errors(f"{generate.name}-{generate.count}")),
        ("namespace", dns_label_errors(generate.namespace)),
    ):
        for error in errors:
            yield Mistake(path.child(name), f'"{getattr(generate, name)}": {error}')


def group_mistakes(group: NodeGroup, path: FieldPath) -> Iterator[Mistake]:
    """What kube-apiserver would say of the nodes of a template."""
    from kubecel.names import dns_subdomain_errors

    for error in dns_subdomain_errors(_filled(group.name)):
        yield Mistake(path.child("name"), f'"{group.name}": {error}')
    if not (group.labels or group.taints) and set(group.allocatable) <= {*RESOURCES}:
        return
    labels = {_filled(key): _filled(value) for key, value in group.labels.items()}
    node = {
        "metadata": {"name": "node", "labels": labels},
        "spec": {"taints": [dict(each) for each in group.taints]},
        "status": {"allocatable": _some(group.allocatable), "capacity": _some(group.allocatable)},
    }
    for field, message in _refused("Node", node):
        if not field.startswith("status.capacity"):
            yield _mistake(path, re.sub(r"^(metadata|spec|status)\.", "", field), message)
    yield from _unknown_resources(group.allocatable, path.child("allocatable"))


def _unknown_resources(names: Iterable[str], path: FieldPath) -> Iterator[Mistake]:
    for name in names:
        if "/" not in name and name not in RESOURCES and not name.startswith("hugepages-"):
            known = f"expected {', '.join(RESOURCES)}, hugepages-… or a name with a domain, such as nvidia.com/gpu"
            yield Mistake(path.child(name), f'no resource is called "{name}"; {known}', did_you_mean(name, RESOURCES))


def _refused(kind: str, obj: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Field and message of everything that the API would not take, or would warn of; none where no package knows."""
    for target in packages.api_rules():
        for field, message, unknown in packages.load(target)(kind, obj):
            yield field, _unknown(field.rpartition(".")[2]) if unknown else message


def _unknown(field: str) -> str:
    known = [each.encode_name for kind in (PodSpec, Taint) for each in msgspec.structs.fields(kind)]
    hint = did_you_mean(field, known)
    return f'unknown field "{field}"{f" ({hint})" if hint else ""}'


def _some(amounts: Mapping[str, Varying]) -> dict[str, Amount]:
    return {name: 1 if isinstance(amount, Distribution) else amount for name, amount in amounts.items()}


def _drawn(amounts: Mapping[str, Varying], name: str) -> bool:
    return isinstance(amounts.get(name), Distribution)


def _filled(text: str) -> str:
    return text.replace("{index}", "0").replace("{zone}", "0")


def _mistake(path: FieldPath, field: str, message: str) -> Mistake:
    steps: list[Step] = [key if not key.isdigit() else int(key) for pair in _STEP.findall(field) for key in pair if key]
    return Mistake(FieldPath((*path.steps, *steps)), message)
