"""Writes the package of a new plugin: the plugin, its test, and a configuration that enables it.

An agent's plugin filters, scores and reads environment variables; a configuration for a kube-scheduler that calls it
over HTTP comes with it.
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
from podium.cli.plugin_texts import (
    AGENT_KUBE_SCHEDULER,
    AGENT_PLUGIN,
    AGENT_SCHEDULER,
    AGENT_TEST,
    PLUGIN,
    PYPROJECT,
    SCHEDULER,
    TEST,
)

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
