"""The code speaks the glossary's words: unique class names, modules that say what they do, plain words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "podium"
MODULES = sorted(SOURCE.rglob("*.py"))

VAGUE = re.compile(r"\b(somebody|nobody|anew|alike|besides|told)\b", re.IGNORECASE)
"""Words that docstrings and comments do without."""

OLD_NAMES = re.compile(
    r"(^|_)(kept|told|said|anew|alike|besides|overheard|surroundings|happening|asked|sift)(_|$)"
    r"|(Kept|Told|Said|Again|Desk|Happening|Surroundings|Wish|News|World|Places|Overheard)"
)
"""Names that the glossary has better words for."""


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_what_it_does(path: Path) -> None:
    doc = ast.get_docstring(ast.parse(path.read_text()))
    assert doc, "no docstring"
    if path.name != "__init__.py":
        first = doc.split()[0].strip(".,:;")
        assert first.endswith("s"), f'opens with "{first}" and not with a verb in the present tense'


def test_public_class_names_are_unique() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name_of(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_words_that_need_a_second_reading_are_not_used(path: Path) -> None:
    found = [
        (node.lineno, match[0])
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for match in VAGUE.finditer(node.value.value)
    ]
    comments = (line.partition(" # ")[2] for line in path.read_text().splitlines())
    found += [(number, match[0]) for number, text in enumerate(comments, 1) for match in VAGUE.finditer(text)]
    assert found == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_names_are_the_glossarys(path: Path) -> None:
    found = []
    for node in nodes(path):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.append((node.lineno, node.name))
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.append((node.lineno, node.id if isinstance(node, ast.Name) else node.attr))
    assert [each for each in found if OLD_NAMES.search(each[1])] == []


BROAD = re.compile(r"except\b.*\b(Exception|BaseException)\b|except:")
"""Clauses that catch nearly anything."""


def test_a_comment_says_what_a_broad_except_catches_and_why() -> None:
    missing = []
    for path in MODULES:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if BROAD.search(line) and " # " not in line and not lines[number - 1].lstrip().startswith("# "):
                missing.append(f"{name_of(path)}:{number + 1}")
    assert missing == []


def test_a_rule_is_set_aside_with_a_reason() -> None:
    root = SOURCE.parents[1]
    files = [path for folder in ("src", "tests", "tools", "docs", "deploy") for path in (root / folder).rglob("*.py")]
    bare = re.compile(r"# noqa(: [A-Z0-9, ]+)?$", re.MULTILINE)
    assert [str(path.relative_to(root)) for path in files if bare.search(path.read_text())] == []
