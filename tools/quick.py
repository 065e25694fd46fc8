"""Runs the tests of what changed: `make quick`, for every save or so.

What changed is what differs from origin/main (without a remote: from HEAD), with work that is not committed. Tests are
taken by the import graph, the nearest first: a changed test itself, then tests that import a changed module, then those
that import what imports it. A file that is no module (a page, a chart, a sample) stands for the folder of tests that
has its name. Tests start until the time is up; what was left out is counted, and `make test` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import grimp

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(folder.name for folder in (ROOT / "src").iterdir() if (folder / "__init__.py").exists())
SECONDS = 30
"""In which tests are started; with style and types before them, a minute in all."""
FARTHEST = 3
"""Imports between a test and a changed module: farther ones are seldom what a change breaks."""


def main() -> NoReturn:
    base = _base()
    changed = _changed(base)
    files = tests_of(changed)
    print(f"quick: {len(changed)} files differ from {base}; {len(files)} test files by import graph, nearest first")
    if not files:
        sys.exit(0)
    environment = {**os.environ, "PODIUM_START_TESTS_UNTIL": str(time.monotonic() + SECONDS)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "not testbed and not long",
        "-p",
        "tools.kit.quick",
        *_parallel(files),
        *files,
    ]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    sys.exit(0 if code == 5 else code)  # 5: the files hold only tests of the test bed


def tests_of(changed: Iterable[str]) -> list[str]:
    """Files of tests to run for changed files, the nearest first."""
    graph = grimp.build_graph(*PACKAGES, "tools", "tests", cache_dir=str(ROOT / ".import_linter_cache"))
    distance = {_module(path): 0 for path in changed if path.endswith(".py")}
    level = set(distance) & graph.modules
    for far in range(1, FARTHEST + 1):
        importers = {each for module in level for each in graph.find_modules_that_directly_import(module)}
        level = importers - distance.keys()
        distance |= dict.fromkeys(level, far)
    found = {_file(module): far for module, far in distance.items() if module.rpartition(".")[2].startswith("test_")}
    for path in changed:
        if not path.endswith(".py"):
            folder = ROOT / "tests" / Path(path).parts[0]
            found |= {str(file.relative_to(ROOT)): 1 for file in folder.glob("test_*.py")}
    if any(path.endswith(".md") for path in changed):
        found |= {"tests/test_site.py": 1, "tests/test_contributing.py": 1}
    return sorted((file for file in found if (ROOT / file).is_file()), key=lambda file: (found[file], file))


def _parallel(files: list[str]) -> list[str]:
    """Starting workers takes longer than a few files do."""
    return ["-n", "2"] if len(files) > 8 else []


def _base() -> str:
    known = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "origin/main"], cwd=ROOT, capture_output=True, check=False
    )
    return "origin/main" if known.returncode == 0 else "HEAD"


def _changed(base: str) -> list[str]:
    names: set[str] = set()
    for command in (["diff", "--name-only", "--merge-base", base], ["ls-files", "--others", "--exclude-standard"]):
        shown = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        names |= set(shown.splitlines())
    return sorted(names)


def _module(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


if __name__ == "__main__":
    main()
