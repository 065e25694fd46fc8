"""Describes nodes in numbers from 0 to 1 that rewards may depend on: what is measured of them, and the room they have.

    one       1
    METRIC    load of each metric, as a share of a node that is full
    missing   the share of metrics that is not known of the node; these count 0
    recent    cpu that recent pods request, which no measurement shows yet, as a share of what is allocatable
    requested cpu, requested memory: what is requested with the pod, as a share
    class0…   1 for nodes with the first value of the class label, and so on

Positions of nodes play no part, so any number of nodes will do, and a new one is judged by what is known of others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Nodes, PodFacts
from podium.cluster.resources import CPU, MEMORY
from podium.framework import Handle
from podium.kube import Pod
from podium.load.readings import GenerationCounter, follow
from podium.load.recent_pods import RecentPods
from podium.load.scaling import median
from podium_lab.online.args import OnlineScoreArgs
from podium_lab.online.bandit import Floats
from podium_lab.online.learner import MOST_CLASSES

REQUESTED = ("requested-cpu", "requested-memory")


class PodAmounts(NamedTuple):
    """What a pod asks for: thousandths of cpu, bytes of memory."""

    cpu: int
    memory: int


def amounts_of(facts: PodFacts) -> PodAmounts:
    return PodAmounts(int(facts.counted[CPU]), int(facts.counted[MEMORY]))


class NodeFeatures:
    """The features of all nodes; `generation` counts what is measured."""

    def __init__(self, args: OnlineScoreArgs, handle: Handle) -> None:
        self.generation = GenerationCounter()
        self._cluster = handle.cluster
        self._full = [metric.full for metric in args.metrics]
        self._readings = [follow(handle, each.series(args.effective_source), self.generation) for each in args.metrics]
        self._recent = RecentPods(
            handle.cluster,
            handle.clock,
            self.generation,
            lambda _pod, facts: int(facts.counted[CPU]),
            lambda name: max(readings.time_of(name) if name in readings.values else 0.0 for readings in self._readings),
        )
        self._label = handle.cluster.labels.column(args.class_label) if args.class_label else None
        classes = tuple(f"class{number}" for number in range(MOST_CLASSES)) if args.class_label else ()
        self.names = ("one", *(each.name for each in args.metrics), "missing", "recent", *REQUESTED, *classes)
        number = len(args.metrics)
        self.moving = slice(2 + number, 5 + number)
        """The features that move with every pod; all others move with measurements."""
        self.loads = [*range(1, 1 + number), *range(2 + number, 5 + number)]
        """The features that grow with what is on a node."""
        self._columns: list[Floats] = []
        self._shares: Floats = np.zeros((len(args.metrics), 0))

    def shares(self) -> Floats:
        """float64[metrics, rows]: load of nodes, NaN where it is not known."""
        columns = [readings.column(self._cluster) for readings in self._readings]
        if len(columns) != len(self._columns) or any(
            new is not old for new, old in zip(columns, self._columns, strict=True)
        ):
            self._columns = columns
            self._shares = np.array([_share(each, full) for each, full in zip(columns, self._full, strict=True)])
        return self._shares

    def missing(self) -> float:
        """The share of nodes of which some metric is not known."""
        present = self._cluster.present
        unknown: NDArray[np.bool_] = np.isnan(self.shares()[:, present]).any(axis=0)  # type: ignore[assignment]
        return float(unknown.mean()) if len(unknown) else 1.0

    def load(self) -> tuple[Floats, float]:
        """float64[rows]: the mean load of each node over its metrics, NaN where none is known; and the median."""
        shares = self.shares()
        known = ~np.isnan(shares)
        number = known.sum(axis=0)
        total = np.where(known, shares, 0.0).sum(axis=0)
        load: Floats = np.where(number > 0, total / np.maximum(number, 1), np.nan)
        present = load[self._cluster.present]
        present = present[~np.isnan(present)]
        return load, median(present) if len(present) else np.nan

    def recent(self, nodes: Nodes) -> Floats:
        """float64[nodes]: what recent pods add, as a share of cpu."""
        if nodes.bare:
            return np.zeros(len(nodes))
        offered = nodes.pick(self._cluster.resources.allocatable[CPU])
        share: Floats = nodes.pick(self._recent.over_rows()) / np.maximum(offered, 1)
        return np.minimum(share, 1.0)

    def requested(self, nodes: Nodes, pod: PodAmounts) -> Floats:
        """float64[cpu and memory, nodes]: what is requested with the pod, as a share."""
        resources = nodes.cluster.resources
        offered = nodes.pick(resources.allocatable[: MEMORY + 1])
        wanted = nodes.pick(resources.requested[: MEMORY + 1]) + np.array([[pod.cpu], [pod.memory]])
        shares: Floats = np.clip(wanted / np.maximum(offered, 1), 0.0, 1.0)
        return shares

    def moving_of(self, nodes: Nodes, pod: PodAmounts) -> Floats:
        """float64[moving features, nodes] for a pod that is not on any of them."""
        return np.concatenate([self.recent(nodes)[np.newaxis], self.requested(nodes, pod)])

    def of(self, nodes: Nodes, pod: PodAmounts, classes: list[str]) -> Floats:
        """float64[features, nodes] for a pod that is not on any of them; `classes` grows by values that are new."""
        shares = nodes.pick(self.shares())
        unknown = np.isnan(shares)
        lines = [
            np.ones((1, len(nodes))),
            np.where(unknown, 0.0, shares),
            unknown.mean(axis=0, keepdims=True),
            self.moving_of(nodes, pod),
        ]
        if self._label is not None:
            lines.append(self._classes(nodes, classes))
        return np.concatenate(lines)

    def of_placed(self, pod: Pod, row: int, facts: PodFacts, classes: list[str]) -> Floats:
        """float64[features] of the node of a pod, as it was before the pod came."""
        nodes = Nodes(self._cluster, np.array([row], dtype=np.intp))
        amounts = amounts_of(facts)
        counted = pod.uid in self._cluster.pods
        features: Floats = self.of(nodes, PodAmounts(0, 0) if counted else amounts, classes)[:, 0]
        if counted:  # the sum over recent pods has it already
            offered = max(int(self._cluster.resources.allocatable[CPU, row]), 1)
            at = self.names.index("recent")
            features[at] = max(features[at] - amounts.cpu / offered, 0.0)
        return features

    def _classes(self, nodes: Nodes, classes: list[str]) -> Floats:
        assert self._label is not None
        for value in self._label.values[1:]:
            if value not in classes and len(classes) < MOST_CLASSES:
                classes.append(value)
        number_of = {value: number for number, value in enumerate(classes)}
        numbers = np.array([number_of.get(value, -1) for value in self._label.values])
        numbers[0] = -1
        found: NDArray[np.intp] = nodes.pick(numbers[self._label.ids])
        indicators: Floats = (np.arange(MOST_CLASSES)[:, np.newaxis] == found).astype(np.float64)
        return indicators


def _share(values: Floats, full: float | None) -> Floats:
    highest = full if full is not None else float(np.nanmax(values, initial=0.0))
    shares: Floats = np.clip(values / highest, 0.0, 1.0) if highest > 0 else values * 0.0
    return shares
