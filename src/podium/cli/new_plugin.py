"""Starting a plugin: a package that can be installed, with a plugin, its test, and a configuration that enables it.

The texts are short on purpose: what is in them is what somebody has to understand to write a plugin. The test decides
for a real pod on two nodes, so it shows at once that the plugin counts. An agent is a copy of the plugin `Template`,
with a configuration of kube-scheduler besides, for one that asks it over HTTP.
"""

import importlib.util
import keyword
import re
import shlex
from importlib.resources import files
from pathlib import Path

from podium.cli.errors import InputError
from podium.plugins import IN_TREE

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_IMPORT = re.compile(r"^from podium[.a-z_]* import (.*)\n", re.MULTILINE)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

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

TEST = '''\
"""NAME in a real decision: two nodes that differ in nothing but the label."""

from pathlib import Path

from podium import Pod, decode_documents, explain, load_config, load_registry

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
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: nginx}]}
"""


def test_the_labelled_node_wins() -> None:
    registry = load_registry(["MODULE:NAME"])
    scheduler = Path(__file__).parent.parent / "scheduler.yaml"
    config = load_config(scheduler.read_text(), str(scheduler), registry).config
    objects = decode_documents(CLUSTER, "CLUSTER").objects
    pod = next(each for each in objects if isinstance(each, Pod))

    answer = explain(objects, pod, config, registry)

    assert answer.selected == "labelled"
    weighted = {node.name: node.scores["NAME"] for node in answer.nodes}
    assert weighted == {"plain": 0, "labelled": 5 * 100}
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

from podium import Pod, decode_documents, explain, load_config, load_registry

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
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: nginx}]}
"""


def test_every_node_may_have_the_pod_and_gets_its_points() -> None:
    registry = load_registry(["MODULE:NAME"])
    scheduler = Path(__file__).parent.parent / "scheduler.yaml"
    config = load_config(scheduler.read_text(), str(scheduler), registry).config
    objects = decode_documents(CLUSTER, "CLUSTER").objects
    pod = next(each for each in objects if isinstance(each, Pod))

    answer = explain(objects, pod, config, registry)

    assert all(node.feasible for node in answer.nodes)
    # Three points count 30, five times.
    assert {node.name: node.scores["NAME"] for node in answer.nodes} == {"one": 150, "other": 150}
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


def write_package(name: str, folder: Path, *, agent: bool = False) -> Path:
    """Write the package of a plugin into a new folder below `folder`; returns that folder."""
    _check_name(name)
    module, package = module_name(name), module_name(name).replace("_", "-")
    target = folder / package
    if target.exists():
        raise InputError(f"{target} exists already; give the plugin another name, or choose another --dir")
    texts = {
        "pyproject.toml": PYPROJECT,
        f"src/{module}.py": _agent() if agent else PLUGIN,
        f"tests/test_{module}.py": AGENT_TEST if agent else TEST,
        "scheduler.yaml": AGENT_SCHEDULER if agent else SCHEDULER,
        **({"kube-scheduler.yaml": AGENT_KUBE_SCHEDULER} if agent else {}),
    }
    for path, text in texts.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        filled = text.replace("NAME", name).replace("MODULE", module).replace("PACKAGE", package)
        filled = filled.replace("VARIABLE_", f"{module.upper()}_")
        (target / path).write_text(filled, encoding="utf-8")
    return target


def _agent() -> str:
    """The source of the plugin `Template`, to be named, with its imports from the public interface."""
    text = (files("podium.plugins") / "template.py").read_text(encoding="utf-8")
    names = {each.strip() for line in _IMPORT.findall(text) for each in line.split(",")}
    _about, _, code = _IMPORT.sub("", text).partition('"""\n\n')
    code = code.replace('\nNAME = "Template"\n', "\n").replace("    name = NAME\n", "")
    code = code.replace("import msgspec\n", f"import msgspec\n\nfrom podium import {', '.join(sorted(names))}\n", 1)
    return AGENT_ABOUT + code.replace("TEMPLATE_", "VARIABLE_").replace("Template", "NAME")


def next_steps(target: Path, name: str, *, agent: bool = False) -> str:
    """What was written, and what to type next."""
    module = module_name(name)
    served = f"\n    podium extender --agents {name} --port 5401     # for kube-scheduler --config kube-scheduler.yaml"
    return f"""\
{target} holds the plugin {name} (src/{module}.py), its test, and scheduler.yaml, which enables it. Next:

    cd {shlex.quote(str(target))}
    pytest                                            # its test passes
    pip install -e .                                  # then podium finds it by name
    podium check scheduler.yaml
    podium explain POD --from cluster.json --config scheduler.yaml{served if agent else ""}"""


def module_name(name: str) -> str:
    """The module of a plugin.

    >>> module_name("QuietNodes"), module_name("GPUPacker")
    ('quiet_nodes', 'gpu_packer')
    """
    return _WORD_START.sub("_", name).lower()


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(f'"{name}" cannot name a plugin; write it in CamelCase, like QuietNodes')
    module = module_name(name)
    if name in IN_TREE or keyword.iskeyword(module) or importlib.util.find_spec(module) is not None:
        raise InputError(f'"{name}" is taken: {_what_is_taken(name, module)}; choose another name')


def _what_is_taken(name: str, module: str) -> str:
    if name in IN_TREE:
        return "kube-scheduler has a plugin of that name"
    if keyword.iskeyword(module):
        return f'"{module}" is a word of the language Python'
    return f'a Python module is called "{module}"'
