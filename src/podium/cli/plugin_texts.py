"""Holds the files of a new plugin's package, as texts to be filled in.

They are short on purpose: they show what a plugin's author has to understand. What else a plugin may do is in
docs/reference/plugin-contract.md. The test decides for a real pod on two
nodes, so it shows at once that the plugin counts. NAME, MODULE, PACKAGE and VARIABLE_ are replaced.
"""

PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "PACKAGE"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["podium"]

[project.entry-points."podium.plugins"]
NAME = "MODULE:NAME"

[tool.setuptools]
package-dir = {"" = "src"}
py-modules = ["MODULE"]

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
addopts = "-p podium.testing.fixtures"
"""

PLUGIN = '''\
"""NAME prefers nodes that carry a label."""

import msgspec

from podium import Cycle, NodeInfo, Plugin


class NAMEArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    label: str = "PACKAGE"


class NAME(Plugin):
    Args = NAMEArgs

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        """How good this node is for `cycle.pod`, 0 to 100."""
        return 100 if node.labels.get(self.args.label) == "true" else 0
'''

TEST = '''\
"""NAME in a real decision: two nodes that differ in nothing but the label."""

from pathlib import Path

from MODULE import NAME
from podium.testing import node, pod

SCHEDULER = Path(__file__).parent.parent / "scheduler.yaml"


def test_the_labelled_node_wins(podium_cluster):
    nodes = [node("plain"), node("labelled", labels={"PACKAGE": "true"})]
    placed = podium_cluster(NAME, config=SCHEDULER, objects=nodes).place(pod())
    assert placed.node == "labelled"
    assert placed.scores("NAME") == {"plain": 0, "labelled": 5 * 100}
'''

SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled:
          - name: NAME
            weight: 5
    pluginConfig:
      - name: NAME
        args:
          label: PACKAGE
"""


AGENT_PLUGIN = '''\
"""NAME lets a pod go anywhere and gives every node the same points: change both to what you need."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec

from podium import Cycle, DependsOn, FieldError, FieldPath, Handle, NodeInfo, NodePart, Plugin, filled

# A field that is None may be set by an environment variable, where an agent is set up by its container.
VARIABLES = {"points": "VARIABLE_POINTS"}
DEFAULT_POINTS = 1
# Points go from 0 to 10, as kube-scheduler expects them of an extender; a score goes from 0 to 100.
SCORE_PER_POINT = 10

_log = logging.getLogger(__name__)


class NAMEArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What a configuration may say about the plugin."""

    points: int | None = None

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if self.points is not None and not 0 <= self.points <= 10:
            yield FieldError.invalid(path.child("points"), self.points, "must be from 0 to 10")


class NAME(Plugin):
    trusted = True
    Args = NAMEArgs
    # The answer about a node depends on the pod and the Node object alone, so it can be kept until the node changes.
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False, kinds=())

    def __init__(self, args: NAMEArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        self._score = SCORE_PER_POINT * (DEFAULT_POINTS if self.args.points is None else self.args.points)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
        """Whether the pod may go to the node: None if so, else the reason why not."""
        _log.debug("may pod %s go to node %s?", cycle.pod.key, node.name)
        return None

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        """How good the node is for the pod, from 0 to 100."""
        return self._score
'''

AGENT_TEST = '''\
"""NAME in a real decision: two nodes, each with the points that the configuration says."""

from pathlib import Path

from MODULE import NAME
from podium.testing import node, pod

SCHEDULER = Path(__file__).parent.parent / "scheduler.yaml"


def test_every_node_may_have_the_pod_and_gets_its_points(podium_cluster):
    placed = podium_cluster(NAME, config=SCHEDULER, objects=[node("one"), node("other")]).place(pod())
    assert placed.feasible == ["one", "other"]
    assert placed.scores("NAME") == {"one": 150, "other": 150}  # three points count 30, five times
'''

AGENT_SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled:
          - name: NAME
            weight: 5
    pluginConfig:
      - name: NAME
        args:
          points: 3
"""

AGENT_KUBE_SCHEDULER = """\
# For a stock kube-scheduler, which asks `podium extender --agents NAME --port 5401`.
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: PACKAGE
extenders:
  - urlPrefix: http://127.0.0.1:5401/NAME
    filterVerb: filter
    prioritizeVerb: prioritize
    weight: 5
    nodeCacheCapable: true
    ignorable: true
    httpTimeout: 2s
"""
