"""Makes a policy file of weights: with what they have seen, and where they come from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from podium.packages import version
from podium_lab.learned.linear import LinearScore
from podium_lab.learned.network import NetworkWeights
from podium_lab.learned.policy_file import API_VERSION, SCHEMA, Calibration, PolicyFile, TrainedOn
from podium_lab.learning.kernel import KernelRun, Scorer
from podium_lab.learning.kernel_state import Floats
from podium_lab.learning.lists import find_list, find_nodes, node_specs, static_plan
from podium_plugins.gpu.request import WHOLE, GpuRequest
from podium_plugins.gpu.terms import GROUPS, MEANINGLESS, STATE, TERMS
from podium_plugins.gpu.typical_pods import TypicalPod, most_of

DIGITS = 6
SLACK = 0.25
"""How far beyond what was seen a term may go, as a share of its range."""


def make_policy(
    name: str,
    weights: Floats,
    calibration: Calibration,
    data: Path,
    lists: Sequence[str],
    provenance: dict[str, Any],
    evaluation: Sequence[dict[str, Any]] = (),
    network: NetworkWeights | None = None,
) -> PolicyFile:
    """A policy that was trained on some lists."""
    by_group = {
        group: {
            term: round(float(weights[g, t]), DIGITS)
            for t, term in enumerate(TERMS)
            if weights[g, t] and term not in MEANINGLESS[group]
        }
        for g, group in enumerate(GROUPS)
    }
    digests = {}
    for each in lists:
        path = find_list(each, data).path
        digests[each] = hashlib.sha256(path.read_bytes()).hexdigest()
    return PolicyFile(
        api_version=API_VERSION,
        kind="linear" if network is None else "network",
        name=name,
        version="1",
        terms_hash=SCHEMA,
        weights=by_group,
        calibration=calibration,
        network=msgspec.UNSET if network is None else network,
        trained_on=seen_on(weights, calibration, data, lists),
        provenance={"codeVersion": version(), **provenance, "lists": digests},
        evaluation=list(evaluation),
    )


def seen_on(weights: Floats, calibration: Calibration, data: Path, lists: Sequence[str]) -> TrainedOn:
    """The ranges of state terms from the empty cluster to the full one, and the pods of the lists."""
    specs = node_specs(find_nodes(data))
    total: Counter[tuple[int, GpuRequest]] = Counter()
    low, high = np.full(len(STATE), np.inf), np.full(len(STATE), -np.inf)
    models: set[str] = set()
    for each in lists:
        pods = find_list(each, data)
        workload = pods.workload
        total += workload
        plan = static_plan(specs, pods.pods, 1000)
        models |= set(plan.models)
        run = KernelRun(plan, Scorer(weights, calibration.offset, calibration.scale), "fixed")
        run.static(workload)
        score = LinearScore(np.ones_like(weights), most_of(workload))
        names = np.array([spec.model for spec in plan.specs])
        for nodes in (plan.nodes, run.nodes):
            states = score.states(nodes.cpu, nodes.free.T, lambda wanted, names=names: np.isin(names, list(wanted)))  # type: ignore[misc]
            low, high = np.minimum(low, states.min(axis=1)), np.maximum(high, states.max(axis=1))
    slack = SLACK * np.maximum(high - low, 1e-9)
    ranges = {
        term: (round(float(a), 4), round(float(b), 4))
        for term, a, b in zip(STATE, low - slack, high + slack, strict=True)
    }
    return TrainedOn(ranges, _classes(total), tuple(sorted(models)))


def _classes(total: Counter[tuple[int, GpuRequest]]) -> tuple[TypicalPod, ...]:
    return tuple(
        TypicalPod(
            cpu=f"{cpu}m",
            gpu_count=request.gpus,
            gpu_milli=request.milli or WHOLE,
            gpu_card_models=request.models,
            pods=pods,
        )
        for (cpu, request), pods in sorted(total.items())
    )
