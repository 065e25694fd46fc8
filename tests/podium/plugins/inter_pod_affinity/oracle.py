"""InterPodAffinity the long way: every placed pod looked at one by one, every node on its own, no columns.

Kept as close as possible to the words of the specification, so that it can be checked by reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from podium.kube import Namespace, Node, Pod, PodAffinity, PodAffinityTerm
from podium.kube.selector import compile_label_selector

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

Pair = tuple[str, str]


class Scene(NamedTuple):
    nodes: Sequence[Node]
    pods: Sequence[Pod]
    """Placed pods, each on one of the nodes."""
    namespaces: Sequence[Namespace]
    pod: Pod

    def placed(self) -> Iterable[tuple[Pod, Node]]:
        by_name = {node.name: node for node in self.nodes}
        return [(pod, by_name[pod.node_name]) for pod in self.pods]

    def incoming_term_matches(self, term: PodAffinityTerm, other: Pod) -> bool:
        """The incoming pod's term reaches the namespaces it names and those chosen; an empty selector chooses all."""
        chooser = compile_label_selector(term.namespace_selector)
        names = _named(term, self.pod) | {each.name for each in self.namespaces if chooser.matches(each.labels)}
        reached = chooser.empty or other.namespace in names
        return reached and compile_label_selector(term.label_selector).matches(other.labels)

    def placed_term_matches(self, term: PodAffinityTerm, holder: Pod) -> bool:
        """A placed pod's term: the selector is asked about the labels of the incoming pod's namespace."""
        labels = next((each.labels for each in self.namespaces if each.name == self.pod.namespace), {})
        return _matches(term, _named(term, holder), labels, self.pod)

    def incoming_matches_all(self, other: Pod) -> bool:
        terms = _attraction(self.pod).required
        return bool(terms) and all(self.incoming_term_matches(term, other) for term in terms)


def _named(term: PodAffinityTerm, holder: Pod) -> set[str]:
    if not term.namespaces and term.namespace_selector is None:
        return {holder.namespace}
    return set(term.namespaces)


def _matches(term: PodAffinityTerm, names: set[str], namespace_labels: Mapping[str, str], pod: Pod) -> bool:
    chooser = compile_label_selector(term.namespace_selector)
    reached = pod.namespace in names or chooser.matches(namespace_labels)
    return reached and compile_label_selector(term.label_selector).matches(pod.labels)


def _attraction(pod: Pod) -> PodAffinity:
    affinity = pod.spec.affinity
    return PodAffinity() if affinity is None or affinity.pod_affinity is None else affinity.pod_affinity


def _repulsion(pod: Pod) -> PodAffinity:
    affinity = pod.spec.affinity
    return PodAffinity() if affinity is None or affinity.pod_anti_affinity is None else affinity.pod_anti_affinity


def refusals(scene: Scene) -> dict[str, str] | None:
    """Why each refused node is refused; None when there is nothing to check at all."""
    existing: Counter[Pair] = Counter()
    affinity: Counter[Pair] = Counter()
    anti_affinity: Counter[Pair] = Counter()
    mine, unwanted = _attraction(scene.pod).required, _repulsion(scene.pod).required
    for other, node in scene.placed():
        for term in _repulsion(other).required:
            if scene.placed_term_matches(term, other) and term.topology_key in node.labels:
                existing[term.topology_key, node.labels[term.topology_key]] += 1
        if scene.incoming_matches_all(other):
            for term in mine:
                if term.topology_key in node.labels:
                    affinity[term.topology_key, node.labels[term.topology_key]] += 1
        for term in unwanted:
            if scene.incoming_term_matches(term, other) and term.topology_key in node.labels:
                anti_affinity[term.topology_key, node.labels[term.topology_key]] += 1
    if not existing and not mine and not unwanted:
        return None
    found: dict[str, str] = {}
    for node in scene.nodes:
        if not _attracted(scene, node, affinity):
            found[node.name] = AFFINITY
        elif any(
            anti_affinity[term.topology_key, node.labels.get(term.topology_key, "")] > 0
            for term in unwanted
            if term.topology_key in node.labels
        ):
            found[node.name] = ANTI_AFFINITY
        elif any(existing[pair] > 0 for pair in node.labels.items()):
            found[node.name] = EXISTING
    return found


def _attracted(scene: Scene, node: Node, affinity: Counter[Pair]) -> bool:
    terms = _attraction(scene.pod).required
    if any(term.topology_key not in node.labels for term in terms):
        return False
    if all(affinity[term.topology_key, node.labels[term.topology_key]] > 0 for term in terms):
        return True
    return not +affinity and scene.incoming_matches_all(scene.pod)


def raw_scores(scene: Scene, hard_weight: int, ignore_existing: bool) -> dict[str, int] | None:
    """Each node's points; None when the plugin has nothing to say."""
    wishes, dislikes = _attraction(scene.pod).preferred, _repulsion(scene.pod).preferred
    if ignore_existing and not wishes and not dislikes:
        return None
    points: dict[str, Counter[str]] = {}

    def give(term: PodAffinityTerm, node: Node, weight: int) -> None:
        if term.topology_key in node.labels:
            points.setdefault(term.topology_key, Counter())[node.labels[term.topology_key]] += weight

    for other, node in scene.placed():
        for sign, weighted_terms in ((1, wishes), (-1, dislikes)):
            for weighted in weighted_terms:
                if scene.incoming_term_matches(weighted.pod_affinity_term, other):
                    give(weighted.pod_affinity_term, node, sign * weighted.weight)
        if hard_weight > 0:
            for term in _attraction(other).required:
                if scene.placed_term_matches(term, other):
                    give(term, node, hard_weight)
        for sign, weighted_terms in ((1, _attraction(other).preferred), (-1, _repulsion(other).preferred)):
            for weighted in weighted_terms:
                if scene.placed_term_matches(weighted.pod_affinity_term, other):
                    give(weighted.pod_affinity_term, node, sign * weighted.weight)
    if not points:
        return None
    return {
        node.name: sum(by_value[node.labels[key]] for key, by_value in points.items() if key in node.labels)
        for node in scene.nodes
    }


def normalized(scores: Mapping[str, int]) -> dict[str, int]:
    lowest, highest = min(scores.values()), max(scores.values())
    if highest == lowest:
        return dict.fromkeys(scores, 0)
    return {name: int(100.0 * (float(score - lowest) / float(highest - lowest))) for name, score in scores.items()}
