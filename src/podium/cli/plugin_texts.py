"""Holds the files of a new plugin's package, as texts to be filled in.

They are short on purpose: they show what a plugin's author has to understand. The test decides for a real pod on two
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


AGENT_ABOUT = '''\
"""NAME lets a pod go anywhere and gives every node the same points: change both to what you need."""

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
