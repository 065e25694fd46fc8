"""Random small scenarios with all that the batched environment models."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from podium_lab.simulator.reading import LoadedScenario, load_scenario

ZONE = "topology.kubernetes.io/zone"


def random_scenario(seed: int, pods: int = 16) -> LoadedScenario:
    """Nodes of mixed sizes with labels, taints and zones; pods with selectors, tolerations and spreading. Times are
    eighths of a second, which floating-point numbers hold exactly; measurements never meet departures."""
    rng = random.Random(seed)
    groups = [_group(rng, number) for number in range(rng.randint(2, 4))]
    sources = [_source(rng, number, max(2, pods // 2)) for number in range(2)]
    usage = {
        "swing": 0,
        "connections": {"lognormal": [20, 1.0]},
        "interval": "7507ms",
        "late": rng.choice(["0s", "2s", "5s"]),
        "missing": rng.choice([0, 0.3]),
    }
    scenario: dict[str, Any] = {
        "nodes": groups,
        "workload": sources,
        "unschedulable": "drop",
        "nodeOrder": rng.choice(["given", "shuffled"]),
    }
    if rng.random() < 0.8:
        scenario["usage"] = usage
    return load_scenario(msgspec.json.encode(scenario).decode(), f"random-{seed}.yaml")


def _group(rng: random.Random, number: int) -> dict[str, Any]:
    group: dict[str, Any] = {
        "count": rng.randint(1, 3),
        "name": f"g{number}-{{index}}",
        "allocatable": {"cpu": rng.choice([2, 4, 8]), "memory": rng.choice(["4Gi", "8Gi"]), "pods": rng.choice([3, 8])},
        "labels": {"pool": rng.choice(["a", "b"])},
        "latency": {"uniform": [10, 150]},
    }
    if rng.random() < 0.8:
        group["zones"] = 2
        group["labels"][ZONE] = "zone-{zone}"
    if rng.random() < 0.3:
        group["allocatable"]["nvidia.com/gpu"] = rng.choice([1, 2, 4])
    if rng.random() < 0.3:
        group["taints"] = [{"key": "dedicated", "value": "x", "effect": rng.choice(["NoSchedule", "PreferNoSchedule"])}]
    return group


def _source(rng: random.Random, number: int, count: int) -> dict[str, Any]:
    lifetime = {f"{rng.randint(8, 500) * 125}ms": 1.0, f"{rng.randint(100, 4000) * 125}ms": 1.0}
    return {
        "generate": {
            "count": count,
            "name": f"s{number}",
            "interval": {"choice": {"0s": 1, "125ms": 1, "3s": 2, f"{rng.randint(8, 200) * 125}ms": 1}},
            "lifetime": {"choice": lifetime},
            "shapes": [_shape(rng, f"s{number}-{i}") for i in range(2)],
        }
    }


def _shape(rng: random.Random, name: str) -> dict[str, Any]:
    requests: dict[str, Any] = {"cpu": {"choice": {"250m": 1, "1": 2, "2": 1}}, "memory": {"uniform": ["64Mi", "3Gi"]}}
    spec: dict[str, Any] = {}
    if name == "s0-0":  # these fit wherever there is room
        return {"name": name, "labels": {"app": name}, "requests": requests}
    shape: dict[str, Any] = {"name": name, "labels": {"app": name}, "requests": requests, "spec": spec}
    if rng.random() < 0.2:
        requests["nvidia.com/gpu"] = 1
    if rng.random() < 0.3:
        spec["nodeSelector"] = {"pool": rng.choice(["a", "b"])}
    elif rng.random() < 0.3:
        term = {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["b"]}]}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        }
    if rng.random() < 0.5:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rng.random() < 0.5:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.choice([1, 2]),
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": name}},
            }
        ]
    if rng.random() < 0.4:
        shape["annotations"] = {"podium.dev/latency-soft": "30", "podium.dev/latency-hard": "90"}
    return shape
