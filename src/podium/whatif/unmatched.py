"""Names the terms of a pod that no node can match, whatever its size: labels that no node has."""

from __future__ import annotations

from collections.abc import Sequence

from podium.kube import Node, NodeSelectorRequirement, Pod
from podium.kube.selector import NodeTerms, SelectorError, compile_node_selector


def unmatched_terms(pod: Pod, nodes: Sequence[Node]) -> list[str]:
    """One sentence for each label of the node selector, and each expression of the required node affinity, that no
    node matches; of several affinity terms only one has to match, so they are named only where none does."""
    found = []
    for key, value in sorted(pod.spec.node_selector.items()):
        if all(node.labels.get(key) != value for node in nodes):
            found.append(f"no node has the label {key}={value} of its node selector")
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    if required is None or _matches_any(compile_node_selector(required), nodes):
        return found
    for term in required.node_selector_terms:
        lacking = [each for each in term.match_expressions if not _matches_one(each, nodes)]
        found += [f"no node matches {_shown(each)} of its node affinity" for each in lacking]
        absent = [each for each in term.match_fields if not any(node.name in each.values for node in nodes)]
        found += [f"no node is called {', '.join(each.values)}, as its node affinity asks" for each in absent]
    return found


def _matches_any(terms: NodeTerms, nodes: Sequence[Node]) -> bool:
    return any(terms.matches(node.labels, node.name) for node in nodes)


def _matches_one(each: NodeSelectorRequirement, nodes: Sequence[Node]) -> bool:
    from podium.kube import NodeSelector, NodeSelectorTerm

    try:
        terms = compile_node_selector(NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(each,)),)))
    except SelectorError:
        return False
    return _matches_any(terms, nodes)


def _shown(each: NodeSelectorRequirement) -> str:
    """An expression as people write it.

    >>> _shown(NodeSelectorRequirement(key="disk", operator="In", values=("ssd", "nvme")))
    'disk in (ssd, nvme)'
    """
    match each.operator:
        case "Exists":
            return each.key
        case "DoesNotExist":
            return f"!{each.key}"
        case "In":
            return f"{each.key} in ({', '.join(each.values)})"
        case "NotIn":
            return f"{each.key} not in ({', '.join(each.values)})"
    return f"{each.key} {each.operator} {', '.join(each.values)}"
