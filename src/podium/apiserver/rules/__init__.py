"""The rules of each kind: what is prepared, defaulted from the cluster and checked when it is written."""

from podium.apiserver.rules.rule import PLAIN, Context, Rules
from podium.apiserver.rules.table import rules_of

__all__ = ["PLAIN", "Context", "Rules", "rules_of"]
