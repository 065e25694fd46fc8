"""Tries plugins in tests: a cluster in memory, builders of nodes and pods, and a pytest fixture.

>>> from podium import Plugin
>>> from podium.testing import TrialCluster, node, pod
>>> class QuietNodes(Plugin):
...     def score_node(self, cycle, node):
...         return 100 if node.labels.get("quiet") == "true" else 0
>>> cluster = TrialCluster(QuietNodes, objects=[node("loud"), node("calm", labels={"quiet": "true"})])
>>> placed = cluster.place(pod("web"))
>>> placed.node, placed.scores("QuietNodes")
('calm', {'loud': 0, 'calm': 100})

In a pytest test, the fixture `podium_cluster` makes such clusters, and shows what was decided when the test fails. The
decisions are those of the live scheduler: the same engine, with a clock that the test moves.

Names are loaded when they are first used: pytest imports this package wherever Podium is installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.testing.builders import node, pod
    from podium.testing.declaration_trial import WrongDeclaration, try_declaration
    from podium.testing.trial_cluster import DependsOnError, TrialCluster
    from podium.testing.trial_outcome import TrialOutcome, TrialState

_MODULE_OF = {
    "DependsOnError": "trial_cluster",
    "TrialCluster": "trial_cluster",
    "TrialOutcome": "trial_outcome",
    "TrialState": "trial_outcome",
    "WrongDeclaration": "declaration_trial",
    "try_declaration": "declaration_trial",
    "node": "builders",
    "pod": "builders",
}

__all__ = [
    "DependsOnError",
    "TrialCluster",
    "TrialOutcome",
    "TrialState",
    "WrongDeclaration",
    "node",
    "pod",
    "try_declaration",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'podium.testing' has no attribute {name!r}")
    found = getattr(import_module(f"podium.testing.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found
