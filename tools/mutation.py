"""Breaks the code in places drawn with a seed, one operator or constant each, and says which of them the tests notice.

A place is a comparison, an arithmetic or boolean operator, a `not`, a small number or a truth value in the body of a
function. Each is broken in a copy of the checkout, in which the tests run, the nearest first, until one fails.

    python -m tools.mutation --count 20 --seed 1                 # what make test finds
    python -m tools.mutation --count 20 --seed 1 --only 3,7 --lane "testbed or long"    # what is left, with the rest
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tools.quick import ROOT, tests_of

FOLDERS: Final = ("podium/engine", "podium/engine/queue", "podium/client", "podium_cluster/apiserver", "podium/plugins")
"""Of src; as many places are drawn from each."""
SWAPPED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Place(NamedTuple):
    """One thing to break: the expression as it stands, and what takes its place."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="", help="numbers of places, as 3,7")
    options.add_argument("--lane", default="not testbed and not long", help="which tests run, as for pytest's -m")
    options.add_argument("--list", action="store_true", help="print the places and run nothing")
    given = options.parse_args()
    places = drawn(given.count, given.seed)
    only = {int(number) for number in given.only.split(",") if number} or set(range(1, given.count + 1))
    missed = []
    with tempfile.TemporaryDirectory(prefix="podium-mutation-") as folder:
        copy = Path(folder) / "checkout"
        if not given.list:
            subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(copy)], cwd=ROOT, check=True)
            (copy / ".venv").symlink_to(ROOT / ".venv")
        try:
            for number, place in enumerate(places, 1):
                what = f"{number:3} {place.file}:{place.line}: {place.before}  →  {place.after}"
                if number not in only or given.list:
                    print(what, flush=True)
                    continue
                began = time.monotonic()
                found = noticed(copy, place, given.lane)
                print(f"{what}\n      {found or 'NOT NOTICED'} ({time.monotonic() - began:.0f} s)", flush=True)
                if not found:
                    missed.append(number)
        finally:
            if not given.list:
                subprocess.run(["git", "worktree", "remove", "--force", str(copy)], cwd=ROOT, check=True)
    if not given.list:
        print(f"{len(only) - len(missed)} of {len(only)} noticed; not: {missed}")
    return 0


def drawn(count: int, seed: int) -> list[Place]:
    """So many places, the folders in turn."""
    dice = random.Random(seed)
    pools = []
    for folder in FOLDERS:
        files = sorted((ROOT / "src" / folder).rglob("*.py"))
        pools.append([place for file in files for place in places_in(file)])
    return [dice.choice(pools[number % len(pools)]) for number in range(count)]


def places_in(file: Path) -> Iterator[Place]:
    source = file.read_text()
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                changed = _broken(node)
                if isinstance(node, ast.expr) and changed is not None and node.end_lineno is not None:
                    start = starts[node.lineno - 1] + node.col_offset
                    end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
                    before = source.encode()[start:end].decode()
                    after = f"({ast.unparse(changed)})"
                    yield Place(str(file.relative_to(ROOT)), node.lineno, start, end, before, after)


def _broken(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.Compare(left, [operator, *others], [first, *rest]) if type(operator) in SWAPPED:
            return ast.Compare(left, [SWAPPED[type(operator)](), *others], [first, *rest])  # type: ignore[list-item]
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED and not isinstance(
            right, ast.Constant | ast.JoinedStr
        ):
            return ast.BinOp(left, SWAPPED[type(operator)](), right)  # type: ignore[arg-type]
        case ast.BoolOp(operator, values):
            return ast.BoolOp(SWAPPED[type(operator)](), values)  # type: ignore[arg-type]
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() as value) if abs(value) < 1000:
            return ast.Constant(value + 1)
    return None


def noticed(copy: Path, place: Place, lane: str) -> str:
    """The first test that fails with the place broken; empty where all pass."""
    file = copy / place.file
    whole = (ROOT / place.file).read_bytes()
    file.write_bytes(whole[: place.start] + place.after.encode() + whole[place.end :])
    try:
        near = [name for name in tests_of([place.file]) if (copy / name).exists()]
        for files in (near[:12], ["tests"]):
            if files and (failed := _first_failure(copy, files, lane)):
                return failed
        return ""
    finally:
        file.write_bytes(whole)


def _first_failure(copy: Path, files: list[str], lane: str) -> str:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "2", "-m", lane, *files]
    path = {
        "PYTHONPATH": str(copy / "src"),
        "PATH": f"{ROOT}/.venv/bin:/usr/local/go/bin:/usr/bin:/bin",
        "HOME": str(Path.home()),
    }
    ran = subprocess.run(command, cwd=copy, env=path, capture_output=True, text=True, check=False)
    if ran.returncode in (0, 5):
        return ""
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0] if lines else f"pytest ended with {ran.returncode}"


if __name__ == "__main__":
    sys.exit(main())
