"""Merges matchLabelKeys and mismatchLabelKeys of a new pod into the selectors beside them.

A key in matchLabelKeys asks for other pods with this pod's value of the label, one in mismatchLabelKeys for pods with
another value. The scheduler knows only selectors, so the API writes `key in (value)` and `key notin (value)` into them
when the pod is created. Keys of labels that the pod does not have say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.kube.json_object import JsonObject

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(pod: JsonObject) -> None:
    """Write the keys of affinity terms and spread constraints into their selectors, in place."""
    spec = pod["spec"]
    affinity, constraints = spec.get("affinity"), spec.get("topologySpreadConstraints")
    if not affinity and not constraints:
        return
    labels = pod["metadata"].get("labels") or {}
    for term in _affinity_terms(affinity or {}):
        _merge(term, "matchLabelKeys", "In", labels)
        _merge(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in constraints or ():
        _merge(constraint, "matchLabelKeys", "In", labels)


def _affinity_terms(affinity: JsonObject) -> Iterator[JsonObject]:
    for name in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(name) or {}
        yield from found.get(_REQUIRED) or ()
        for weighted in found.get(_PREFERRED) or ():
            yield weighted.get("podAffinityTerm") or {}


def _merge(term: JsonObject, field: str, operator: str, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:  # It selects nothing; with keys it is refused.
        return
    same = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in term.get(field) or () if key in labels
    ]
    if same:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *same]
