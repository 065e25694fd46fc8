"""Makes the largest pod that a namespace's limit ranges let through, as cluster-capacity's genpod does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubecel.quantity import NANO, format_nano, parse
from podium.kube import Container, ObjectMeta, Pod, PodSpec, ResourceRequirements
from podium.whatif.patterns import QuestionError

NODE_SELECTOR: Final = "openshift.io/node-selector"


def largest_pod(namespace: str, ranges: Iterable[Mapping[str, Any]], annotations: Mapping[str, str]) -> Pod:
    """A pod that asks for the smallest `max` of all limit ranges of type Pod, of every resource they name."""
    most: dict[str, int] = {}
    for each in ranges:
        if (each["metadata"].get("namespace") or "default") != namespace:
            continue
        for limit in (each.get("spec") or {}).get("limits") or ():
            if limit.get("type") == "Pod":
                for name, amount in (limit.get("max") or {}).items():
                    most[name] = min(parse(amount), most.get(name, parse(amount)))
    if not most:
        raise QuestionError(
            f"--namespace-max {namespace}: no LimitRange of type Pod with a max is known there; "
            "add what kubectl get limitranges -o json prints with --from"
        )
    amounts = {
        name: format_nano(amount, binary=name != "cpu" and amount >= 1024 * NANO) for name, amount in most.items()
    }
    resources = ResourceRequirements(requests=dict(amounts), limits=dict(amounts))
    container = Container(name=namespace, image="registry.k8s.io/pause", resources=resources)
    return Pod(
        metadata=ObjectMeta(name=f"{namespace}-max", namespace=namespace),
        spec=PodSpec(containers=(container,), node_selector=_node_selector(annotations)),
    )


def _written(name: str, amount: int) -> str:
    return format_nano(amount, binary=name != "cpu" and amount >= 1024 * NANO)


def _node_selector(annotations: Mapping[str, str]) -> dict[str, str]:
    pairs = (each.partition("=") for each in annotations.get(NODE_SELECTOR, "").split(",") if "=" in each)
    return {key.strip(): value.strip() for key, _equals, value in pairs}
