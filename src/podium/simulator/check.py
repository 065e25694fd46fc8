"""Checks a scenario without running it: every file that it names is read, and its first pods are made."""

from __future__ import annotations

from itertools import islice

from podium.config.field import FieldPath
from podium.kube import decode_documents
from podium.simulator.errors import ScenarioError
from podium.simulator.nodes import gpu_capacity, make_nodes
from podium.simulator.objects import read_custom
from podium.simulator.rules import listed
from podium.simulator.sweep import Plan
from podium.simulator.workload import arrivals

MOST = 1_000_000
"""Pods that are counted."""


def check_files(planned: Plan) -> tuple[str, int]:
    """How many pods the first run has, in words, and how many nodes there are; raises ScenarioError."""
    loaded = planned.loaded
    nodes = [
        node for _, group in listed(loaded.scenario.nodes, FieldPath()) for node in make_nodes(group, loaded.source)
    ]
    if not nodes:
        raise ScenarioError(f"{loaded.position_of('nodes')}: nodes: expected at least one node")
    for name in loaded.scenario.objects:
        path = loaded.source.find(name)
        text = path.read_text(encoding="utf-8-sig")
        decode_documents(text, str(path))
        list(read_custom(text, str(path)))
    for fault in loaded.scenario.faults:
        if fault.group is not None:
            make_nodes(fault.group, loaded.source)
    pods = sum(1 for _ in islice(arrivals(loaded, planned.jobs[0].seed, gpu_capacity(nodes)), MOST))
    return f"{pods:,} pods" if pods < MOST else f"more than {MOST:,} pods", len(nodes)
