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

_IMPORTS = """\
from pathlib import Path

from podium import Pod, decode_documents, explain, load_config, load_registry

"""

_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: nginx}]}
"""

_DECISION = """\
    registry = load_registry(["MODULE:NAME"])
    scheduler = Path(__file__).parent.parent / "scheduler.yaml"
    config = load_config(scheduler.read_text(), str(scheduler), registry).config
    objects = decode_documents(CLUSTER, "CLUSTER").objects
    pod = next(each for each in objects if isinstance(each, Pod))

    answer = explain(objects, pod, config, registry)
"""


def _test(text: str) -> str:
    """A test with what all of them have in common."""
    return text.replace("IMPORTS\n", _IMPORTS).replace("POD_OF_THE_TEST\n", _POD).replace("DECISION\n", _DECISION)


TEST = _test('''\
"""NAME in a real decision: two nodes that differ in nothing but the label."""

IMPORTS
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: plain}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: labelled, labels: {PACKAGE: "true"}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
POD_OF_THE_TEST
"""


def test_the_labelled_node_wins() -> None:
DECISION
    assert answer.selected == "labelled"
    weighted = {node.name: node.scores["NAME"] for node in answer.nodes}
    assert weighted == {"plain": 0, "labelled": 5 * 100}
''')

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

AGENT_TEST = _test('''\
"""NAME in a real decision: two nodes, each with the points that the configuration says."""

IMPORTS
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: one}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: other}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
POD_OF_THE_TEST
"""


def test_every_node_may_have_the_pod_and_gets_its_points() -> None:
DECISION
    assert all(node.feasible for node in answer.nodes)
    # Three points count 30, five times.
    assert {node.name: node.scores["NAME"] for node in answer.nodes} == {"one": 150, "other": 150}
''')

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
