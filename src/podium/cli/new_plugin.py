"""Writes the package of a new plugin: the plugin, its test, and a configuration that enables it.

An agent's plugin filters, scores and reads environment variables; a configuration for a kube-scheduler that calls it
over HTTP comes with it.

The texts of the files are short on purpose: they show what a plugin's author has to understand. What else a plugin may
do is in docs/reference/plugin-contract.md. The test decides for a real pod on two nodes, so it shows at once that the
plugin counts. NAME, MODULE, PACKAGE and VARIABLE_ are replaced.
"""

import importlib.util
import keyword
import re
import shlex
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from token import NAME
from tokenize import generate_tokens

from podium import packages
from podium.cli.errors import InputError
from podium.cli.files import writing

LONGEST = 40
"""Characters of a name: with a hyphen between words, it has to be a label of nodes and part of a file's name."""
_SPELLING = re.compile(r"[A-Za-z][A-Za-z0-9]*([ ._-]+[A-Za-z0-9]+)*")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def write_package(name: str, folder: Path, *, agent: bool = False) -> Path:
    """Write the package of a plugin into a new folder below `folder`; returns that folder."""
    module, package = module_name(name), module_name(name).replace("_", "-")
    _check_free(name, module)
    target = folder / package
    if target.exists():
        raise InputError(f"{target} exists already; give the plugin another name, or choose another --dir")
    texts = {
        "pyproject.toml": PYPROJECT,
        f"src/{module}.py": AGENT_PLUGIN if agent else PLUGIN,
        f"tests/test_{module}.py": AGENT_TEST if agent else TEST,
        "scheduler.yaml": AGENT_SCHEDULER if agent else SCHEDULER,
        **({"kube-scheduler.yaml": AGENT_KUBE_SCHEDULER} if agent else {}),
    }
    _check_unused(name, (text for path, text in texts.items() if path.endswith(".py")))
    words = {"NAME": name, "MODULE": module, "PACKAGE": package, "VARIABLE_": f"{module.upper()}_"}
    for path, text in texts.items():
        filled = re.sub("|".join(words), lambda word: words[word[0]], text)
        with writing(target):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(filled, encoding="utf-8")
    return target


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


def class_name(spelling: str) -> str:
    """The name of a plugin, however it was spelt.

    >>> [class_name(each) for each in ("quiet-nodes", "quiet.nodes", "Quiet Nodes", "quietNodes", "GPUPacker")]
    ['QuietNodes', 'QuietNodes', 'QuietNodes', 'QuietNodes', 'GPUPacker']
    """
    if not _SPELLING.fullmatch(spelling):
        raise InputError(
            f'"{spelling}" cannot name a plugin; write letters and digits, a letter first, like QuietNodes or '
            "quiet-nodes"
        )
    if len(spelling) > LONGEST:
        raise InputError(f'"{spelling[:LONGEST]}…" is too long for a plugin; write at most {LONGEST} characters')
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[ ._-]+", spelling))


def _check_unused(name: str, sources: Iterable[str]) -> None:
    """Refuse what the plugin's files already use, such as Plugin, Path and None."""
    used = {word.string for text in sources for word in generate_tokens(StringIO(text).readline) if word.type == NAME}
    if name in used:
        raise InputError(f'"{name}" is taken: the files of the plugin use the word "{name}"; choose another name')


def _check_free(name: str, module: str) -> None:
    if name in packages.plugins() or _python_word(name, module) or importlib.util.find_spec(module) is not None:
        raise InputError(f'"{name}" is taken: {_what_is_taken(name, module)}; choose another name')


def _what_is_taken(name: str, module: str) -> str:
    if name in packages.plugins():
        return "kube-scheduler has a plugin of that name"
    if word := _python_word(name, module):
        return f'"{word}" is a word of the language Python'
    return f'a Python module is called "{module}"'


def _python_word(*names: str) -> str | None:
    return next(filter(keyword.iskeyword, names), None)


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
