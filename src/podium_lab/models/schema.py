"""Names the features that models see, in their order, and hashes them.

A file or a server that was made for other features would answer with numbers that mean nothing, so a model says for
which schema it was made, and Podium refuses another. Change anything here only together with VERSION.

Features are raw: scaling belongs to the model (`scaling` in a file's metadata, applied inside its graph). All are
finite and within LIMIT.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

VERSION: Final = 1
RESOURCES: Final = ("cpu", "memory", "gpu", "pods")
"""Thousandths of a core, bytes, thousandths of a GPU, pods: the last axis of amounts."""
CPU, MEMORY, GPU, PODS = range(4)
CLASSES: Final = 8
"""Pods fall into so many classes, by a hash of their type label: see `pod_class`."""
LIMIT: Final = 5.0

MEASURED: Final = ("cpu", "memory", "gpu", "connections", "traffic", "latency")
"""What is measured: for each there is a bit that says whether it's known of the node."""

NODE: Final = (
    *(f"{resource}-used" for resource in RESOURCES),
    *(f"{resource}-requested" for resource in RESOURCES),
    *(f"{resource}-requested-with-pod" for resource in RESOURCES),
    *(f"{resource}-free" for resource in RESOURCES),
    "residual",
    "connections",
    "traffic",
    "latency",
    "age",
    "empty",
    "same-class",
    *(f"{metric}-known" for metric in MEASURED),
)
POD: Final = (
    *(f"{resource}-request" for resource in RESOURCES),
    "latency-soft-set",
    "latency-hard-set",
    "priority",
    *(f"class-{number}" for number in range(CLASSES)),
)
GLOBAL: Final = ("feasible", "mean-share", "highest-share", "queue")

F: Final = len(NODE)
P: Final = len(POD)
G: Final = len(GLOBAL)


def schema() -> dict[str, object]:
    """The schema as plain data: what is hashed, and what a model file may carry for people."""
    return {"version": VERSION, "node": list(NODE), "pod": list(POD), "global": list(GLOBAL), "limit": LIMIT}


def _hash() -> str:
    text = json.dumps(schema(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


SCHEMA_HASH: Final = _hash()
"""64 hexadecimal digits; the key `schema` of a model's metadata."""
