"""Checks the incoming pod's required terms, and the required anti-affinity of pods already placed.

All counting is per domain, that is per value of a topology key; a node without the key is in no domain:

- `affinity`: placed pods that match every required affinity term at once,
- `anti_affinity`: placed pods that match a required anti-affinity term, once per term,
- `existing`: required anti-affinity terms of placed pods that match the incoming pod.

A node passes if it has the key of each affinity term and each of its domains holds a matching pod (or none exists
anywhere and the pod matches its own terms: one must be first), and if its domains are free of the other two
counts. Terminating pods count.

Counts are arrays indexed by the number of the label value, so the verdict for any choice of nodes is one lookup per
key. They are never changed in place: adding or removing a pod replaces them, so copies of the notes may share
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Mask, Nodes, PlacedPod, TermGroup, TermKind
from podium.framework import Cycle, Status, Verdict
from podium.kube import Pod
from podium.plugins.inter_pod_affinity.incoming import Incoming

AFFINITY = Status.unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = Status.unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Status.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

DomainCounts = dict[str, NDArray[np.int64]]
"""Topology key → count per number of its label value."""


class RequiredNotes:
    __slots__ = ("affinity", "anti_affinity", "existing", "incoming", "namespace_labels", "pod")

    def __init__(self, pod: Pod, namespace_labels: Mapping[str, str], incoming: Incoming) -> None:
        self.pod = pod
        self.namespace_labels = namespace_labels
        self.incoming = incoming
        self.affinity: DomainCounts = {}
        self.anti_affinity: DomainCounts = {}
        self.existing: DomainCounts = {}

    def clone(self) -> RequiredNotes:
        copy = RequiredNotes(self.pod, self.namespace_labels, self.incoming)
        copy.affinity = dict(self.affinity)
        copy.anti_affinity = dict(self.anti_affinity)
        copy.existing = dict(self.existing)
        return copy

    @property
    def needless(self) -> bool:
        """Whether no node can be refused, also after pods came or went that have no say here."""
        return not (self.existing or self.incoming.affinity or self.incoming.anti_affinity)


def required_notes(cycle: Cycle, incoming: Incoming, groups: Iterable[TermGroup]) -> RequiredNotes:
    """Count the placed pods for a cycle; `groups` are the placed terms that match its pod."""
    pod, cluster = cycle.pod, cycle.cluster
    notes = RequiredNotes(pod, cluster.objects.namespace_labels(pod.namespace), incoming)
    if incoming.affinity is not None:
        matching = cluster.counts.column(incoming.affinity)
        for key in incoming.affinity_keys:
            notes.affinity[key] = matching.sums(cluster.labels, key)
    for key, query in incoming.anti_affinity:
        _accumulate(notes.anti_affinity, key, cluster.counts.column(query).sums(cluster.labels, key))
    repelling: DomainCounts = {}
    for group in groups:
        if group.term.kind == TermKind.REQUIRED_ANTI_AFFINITY:
            key = group.term.topology_key
            _accumulate(repelling, key, group.sums(cluster.labels, key))
    notes.existing = {key: counts for key, counts in repelling.items() if counts.any()}
    return notes


def adjust(notes: RequiredNotes, cluster: Cluster, placed: PlacedPod, delta: int) -> None:
    """The notes as they would be with one more (`delta` 1) or one fewer (-1) placed pod."""
    pod, incoming = placed.pod, notes.incoming
    for term in placed.facts.terms:
        if term.kind == TermKind.REQUIRED_ANTI_AFFINITY and term.matches(
            notes.pod.namespace, notes.namespace_labels, notes.pod.labels
        ):
            _move(notes.existing, cluster, term.topology_key, placed.row, delta)
    if incoming.affinity is not None and incoming.affinity.matches(pod.namespace, pod.labels, False):
        for key in incoming.affinity_keys:
            _move(notes.affinity, cluster, key, placed.row, delta)
    for key, query in incoming.anti_affinity:
        if query.matches(pod.namespace, pod.labels, False):
            _move(notes.anti_affinity, cluster, key, placed.row, delta)


def verdict(notes: RequiredNotes, nodes: Nodes) -> Verdict | None:
    """Which nodes must not take the pod, each for the first of the three reasons."""
    repelled = _in_counted_domain(notes.existing, nodes)
    repelling = _in_counted_domain(notes.anti_affinity, nodes)
    unattracted = None if notes.incoming.affinity is None else ~_attracted(notes, nodes)
    return _first_of((unattracted, AFFINITY), (repelling, ANTI_AFFINITY), (repelled, EXISTING_ANTI_AFFINITY))


def _attracted(notes: RequiredNotes, nodes: Nodes) -> Mask:
    first_of_its_kind = _first_of_its_kind(notes)
    answer: Mask | None = None
    for key, counts in notes.affinity.items():
        values = nodes.label_ids(key)
        here: Mask = values != 0 if first_of_its_kind else counts.take(values) > 0
        answer = here if answer is None else answer & here
    assert answer is not None, "a required affinity term has a topology key"
    return answer


def _first_of_its_kind(notes: RequiredNotes) -> bool:
    """Whether no pod in any domain matches the affinity terms, while the pod itself does."""
    query, pod = notes.incoming.affinity, notes.pod
    return (
        query is not None
        and not any(counts.any() for counts in notes.affinity.values())
        and query.matches(pod.namespace, pod.labels, False)
    )


def _in_counted_domain(domains: DomainCounts, nodes: Nodes) -> Mask | None:
    """Which nodes are in some domain with a count; None when no domain is counted."""
    answer: Mask | None = None
    for key, counts in domains.items():
        here: Mask = counts.take(nodes.label_ids(key)) > 0
        answer = here if answer is None else answer | here
    return answer


def _first_of(*rejections: tuple[Mask | None, Status]) -> Verdict | None:
    given = [(where, status) for where, status in rejections if where is not None and where.any()]
    if len(given) == 1:
        return Verdict.reject(*given[0])
    return Verdict.first_of(*given) if given else None


def _accumulate(sums: DomainCounts, key: str, counts: NDArray[np.int64]) -> None:
    known = sums.get(key)
    sums[key] = counts if known is None else known + counts


def _move(domains: DomainCounts, cluster: Cluster, key: str, row: int, delta: int) -> None:
    column = cluster.labels.column(key)
    value = int(column.ids[row])
    if value:
        known = domains.get(key)
        counts = np.zeros(len(column.values), dtype=np.int64) if known is None else known.copy()
        counts[value] += delta
        domains[key] = counts
