"""Compiles and evaluates the rules of custom kinds: `x-kubernetes-validations` in their schemas."""

from podium_cluster.apiserver.schema.rules.correlation import Correlated
from podium_cluster.apiserver.schema.rules.rule_tree import RuleTree, rule_tree

__all__ = ["Correlated", "RuleTree", "rule_tree"]
