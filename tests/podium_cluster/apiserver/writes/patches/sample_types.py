"""A small kind with one field of every sort that patches tell apart, and random objects of it."""

from typing import Any

from hypothesis import strategies as st

from tests.podium_cluster.apiserver.writes.patches.openapi_types import OpenApiType

_TEXT = {"type": "string"}
DEFINITIONS: dict[str, Any] = {
    "Sample": {
        "type": "object",
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "metadata": {"$ref": "Meta", "default": {}},
            "spec": {"$ref": "Spec", "default": {}},
            "status": {"$ref": "Status", "default": {}},
        },
    },
    "Meta": {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "labels": {"type": "object", "additionalProperties": _TEXT},
            "annotations": {"type": "object", "additionalProperties": _TEXT},
            "finalizers": {
                "type": "array",
                "items": _TEXT,
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
        },
    },
    "Spec": {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "selector": {"type": "object", "additionalProperties": _TEXT, "x-kubernetes-map-type": "atomic"},
            "args": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "atomic"},
            "strategy": {"$ref": "Strategy", "x-kubernetes-patch-strategy": "retainKeys"},
            "parts": {
                "type": "array",
                "items": {"$ref": "Part"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "name",
            },
        },
    },
    "Strategy": {"type": "object", "properties": {"type": _TEXT, "rolling": {"$ref": "Rolling"}}},
    "Rolling": {"type": "object", "properties": {"surge": {"type": "integer"}}},
    "Part": {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "image": _TEXT,
            "ports": {
                "type": "array",
                "items": {"$ref": "Port"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "port",
            },
        },
    },
    "Port": {
        "type": "object",
        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "label": _TEXT},
    },
    "Status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
}
SAMPLE = OpenApiType({"$ref": "Sample"}, DEFINITIONS)

_word = st.sampled_from(["x", "y", "z"])
_labels = st.dictionaries(st.sampled_from(["a", "b", "c"]), _word, min_size=1, max_size=3)
_ports = st.lists(st.sampled_from([80, 81]), unique=True, min_size=1).map(lambda ports: [{"port": p} for p in ports])
_parts = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["p", "q", "r"])}, optional={"image": _word, "ports": _ports}),
    unique_by=lambda part: part["name"],
    min_size=1,
    max_size=3,
)
_spec = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "selector": _labels,
        "args": st.lists(_word, min_size=1, max_size=2),
        "parts": _parts,
    },
)
_finalizers = st.lists(st.sampled_from(["f", "g", "h"]), unique=True, min_size=1)


def _sample(labels: dict[str, str] | None, finalizers: list[str] | None, spec: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "s"}
    if labels:
        metadata["labels"] = labels
    if finalizers:
        metadata["finalizers"] = finalizers
    return {"apiVersion": "v1", "kind": "Sample", "metadata": metadata, **({"spec": spec} if spec else {})}


samples = st.builds(_sample, st.none() | _labels, st.none() | _finalizers, _spec)
