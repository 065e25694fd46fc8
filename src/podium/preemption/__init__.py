"""Searches for pods to evict so that a more important pod fits: what plugins that preempt share.

A plugin defines a `Ruling` (who may go, who may stay), searches with `find_candidates`, and evicts with `Evictions`.
"""

from podium.preemption.dry_runs import Candidate, Harm, LowestPriorities
from podium.preemption.evictions import (
    VICTIM_GONE,
    CandidateNodesArgs,
    Evictions,
    fruitless,
    objection_to_preempting,
    random_start,
    refused,
    unschedulable_rows,
    was_evicted,
)
from podium.preemption.rules import ByPriority, Ruling, by_importance
from podium.preemption.search import Budgets, PreemptionSearch, find_candidates, harm_of, no_candidates_message
from podium.preemption.trial import Trial

__all__ = [
    "VICTIM_GONE",
    "Budgets",
    "ByPriority",
    "Candidate",
    "CandidateNodesArgs",
    "Evictions",
    "Harm",
    "LowestPriorities",
    "PreemptionSearch",
    "Ruling",
    "Trial",
    "by_importance",
    "find_candidates",
    "fruitless",
    "harm_of",
    "no_candidates_message",
    "objection_to_preempting",
    "random_start",
    "refused",
    "unschedulable_rows",
    "was_evicted",
]
