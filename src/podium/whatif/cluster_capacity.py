"""Writes the answer of `podium capacity` as cluster-capacity's own document, for scripts that read that."""

from __future__ import annotations

from typing import Any

from podium.kube import Pod
from podium.kube.meta import format_time
from podium.kube.requests import fit_requests
from podium.whatif.capacity import LIMIT, CapacityAnswer, amount_text
from podium.whatif.records import refusal_records

PRIMARY = ("cpu", "memory", "ephemeral-storage")
GPU = "nvdia.com/gpu"
"""How cluster-capacity spells it, which scripts rely on."""


def review(answer: CapacityAnswer, now: float) -> dict[str, Any]:
    """The document; `failSummary`, which cluster-capacity leaves empty, is filled in."""
    stop = answer.stop
    reasons = [] if stop is None else [{"reason": each.reason, "count": each.nodes} for each in refusal_records(stop)]
    return {
        "spec": {
            "templates": [_template(each.pod) for each in answer.templates],
            "replicas": answer.limit or 0,
            "podRequirements": [_requirements(each.pod) for each in answer.templates],
        },
        "status": {
            "creationTimestamp": format_time(now),
            "replicas": answer.replicas,
            "failReason": {
                "failType": "LimitReached" if answer.reached == LIMIT else "Unschedulable",
                "failMessage": f"Maximum number of pods simulated: {answer.limit}"
                if answer.reached == LIMIT
                else (stop.message if stop is not None else ""),
            },
            "pods": [
                {
                    "podName": template.name,
                    "replicasOnNodes": [
                        {"nodeName": name, "replicas": number} for name, number in sorted(shares.items())
                    ],
                    "failSummary": reasons,
                }
                for template, shares in zip(answer.templates, answer.by_template, strict=True)
            ],
        },
    }


def _template(pod: Pod) -> dict[str, Any]:
    import msgspec

    return {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)}


def _requirements(pod: Pod) -> dict[str, Any]:
    requests = fit_requests(pod)
    primary = {name: amount_text(name, requests.get(name, 0)) for name in PRIMARY}
    primary[GPU] = str(requests.get("nvidia.com/gpu", 0))
    scalar = {name: amount for name, amount in requests.items() if name not in PRIMARY and name != "nvidia.com/gpu"}
    return {
        "podName": pod.name,
        "resources": {"primaryResources": primary, "scalarResources": scalar or None},
        "nodeSelectors": pod.spec.node_selector or None,
    }
