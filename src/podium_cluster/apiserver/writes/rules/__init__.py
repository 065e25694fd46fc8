"""The rules of each kind: what is prepared, defaulted from the cluster and checked when it is written."""

from podium_cluster.apiserver.writes.rules.rule import PLAIN, KindRules
from podium_cluster.apiserver.writes.rules.table import rules_of

__all__ = ["PLAIN", "KindRules", "rules_of"]
