"""The code speaks the glossary's words: unique class names, modules that say what they do, plain words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
MODULES = sorted(SOURCE.rglob("*.py"))

VAGUE = re.compile(r"\b(somebody|nobody|anew|alike|besides|told)\b", re.IGNORECASE)
"""Words that docstrings and comments do without."""

OLD_NAMES = re.compile(
    r"(^|_)(kept|told|said|anew|alike|besides|overheard|surroundings|happening|asked|sift)(_|$)"
    r"|(^|_)(in_force|scarce|scrutiny|experience|uses_of|reach_index|came_or_went)(_|$)"
    r"|(Kept|Told|Said|Again|Desk|Happening|Surroundings|Wish|News|World|Places|Overheard)"
)
"""Names that the glossary has better words for."""


@pytest.fixture(scope="module")
def modules() -> dict[str, list[ast.AST]]:
    """Every module of the source, by its name: all that stands in it, itself first."""
    return {str(path.relative_to(SOURCE)): list(ast.walk(ast.parse(path.read_text()))) for path in MODULES}


def test_a_module_opens_with_what_it_does(modules: dict[str, list[ast.AST]]) -> None:
    wrong = {}
    for name, (tree, *_) in modules.items():
        assert isinstance(tree, ast.Module)
        first = (ast.get_docstring(tree) or "nothing").split()[0].strip(".,:;")
        if first == "nothing" or not (first.endswith("s") or name.endswith("__init__.py")):
            wrong[name] = first  # and not a verb in the present tense
    assert wrong == {}


def test_public_class_names_are_unique(modules: dict[str, list[ast.AST]]) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, nodes in modules.items():
        for node in nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_file_name_in_many_folders_says_what_it_is_of() -> None:
    folders: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        folders[path.name].append(str(path.parent.relative_to(SOURCE)))
    for name in ("__init__.py", "plugin.py", "args.py", "package.py"):
        del folders[name]
    assert {name: where for name, where in folders.items() if len(where) > 4} == {}


def test_words_that_need_a_second_reading_are_not_used(modules: dict[str, list[ast.AST]]) -> None:
    found = []
    for name, nodes in modules.items():
        for node in nodes:
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                found += [f"{name}:{node.lineno}: {match[0]}" for match in VAGUE.finditer(node.value.value)]
        comments = (line.partition(" # ")[2] for line in (SOURCE / name).read_text().splitlines())
        for number, text in enumerate(comments, 1):
            found += [f"{name}:{number}: {match[0]}" for match in VAGUE.finditer(text)]
    assert found == []


def test_names_are_the_glossarys(modules: dict[str, list[ast.AST]]) -> None:
    found = []
    for module, nodes in modules.items():
        for node in nodes:
            name = ""
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = node.name
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                name = node.id if isinstance(node, ast.Name) else node.attr
            if OLD_NAMES.search(name):
                found.append(f"{module}: {name}")
    assert found == []


BROAD = re.compile(r"except\b.*\b(Exception|BaseException)\b|except:")
"""Clauses that catch nearly anything."""


def test_a_comment_says_what_a_broad_except_catches_and_why() -> None:
    missing = []
    for path in MODULES:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if BROAD.search(line) and " # " not in line and not lines[number - 1].lstrip().startswith("# "):
                missing.append(f"{path.relative_to(SOURCE)}:{number + 1}")
    assert missing == []


def test_a_rule_is_set_aside_with_a_reason() -> None:
    root = SOURCE.parents[1]
    files = [path for folder in ("src", "tests", "tools", "docs", "deploy") for path in (root / folder).rglob("*.py")]
    bare = re.compile(r"# noqa(: [A-Z0-9, ]+)?$", re.MULTILINE)
    assert [str(path.relative_to(root)) for path in files if bare.search(path.read_text())] == []
