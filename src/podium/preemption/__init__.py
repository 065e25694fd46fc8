"""Searches for pods to evict so that a more important pod fits: what plugins that preempt share.

A plugin defines a `Ruling` (who may go, who may stay), searches with `find_candidates`, and evicts with `Evictions`.
"""

from podium.preemption.dry_runs import Candidate, Harm, LowestPriorities
from podium.preemption.evictions import (
    NEVER,
    VICTIM_LEAVING,
    CandidateNodesArgs,
    Evictions,
    nominated_row,
    objection_to_preempting,
    refused,
    was_evicted,
)
from podium.preemption.rules import ByPriority, Ruling, by_importance
from podium.preemption.search import Budgets, PreemptionSearch, find_candidates, harm_of, no_candidates_message

__all__ = [
    "NEVER",
    "VICTIM_LEAVING",
    "Budgets",
    "ByPriority",
    "Candidate",
    "CandidateNodesArgs",
    "Evictions",
    "Harm",
    "LowestPriorities",
    "PreemptionSearch",
    "Ruling",
    "by_importance",
    "find_candidates",
    "harm_of",
    "no_candidates_message",
    "nominated_row",
    "objection_to_preempting",
    "refused",
    "was_evicted",
]
