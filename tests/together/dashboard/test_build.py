"""What is checked in is what the sources in `web/` build; and the page's own checks pass."""

from __future__ import annotations

import filecmp
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.together.dashboard.browser import ROOT, required

pytestmark = pytest.mark.long

STATIC = ROOT / "src/podium_dashboard/static"
MOST_BYTES = 300_000
MOST_FILES = 20


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of `web/` with what it depends on."""
    required(shutil.which("npm"), "Node")
    folder = tmp_path_factory.mktemp("page") / "web"
    shutil.copytree(ROOT / "web", folder, ignore=shutil.ignore_patterns("node_modules"))
    if (ROOT / "web/node_modules/vite").is_dir():
        (folder / "node_modules").symlink_to(ROOT / "web/node_modules")
    else:
        got = _ran(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        required(got.returncode == 0, f"a registry of npm packages ({got.stderr[-200:]})")
    return folder


def _ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_page_is_built_from_its_sources(sources: Path) -> None:
    built = sources.parent / "static"
    done = _ran(sources, "npx", "vite", "build", "--outDir", str(built))
    assert done.returncode == 0, done.stdout + done.stderr
    expected, found = _files(STATIC), _files(built)
    assert found == expected, "run make dashboard"
    _same, differ, missing = filecmp.cmpfiles(STATIC, built, expected, shallow=False)
    assert (differ, missing) == ([], []), "run make dashboard"


def test_types_style_and_logic_of_the_page_are_right(sources: Path) -> None:
    for command in (("npx", "tsc", "--noEmit"), ("npx", "biome", "check", "."), ("npx", "vitest", "run")):
        done = _ran(sources, *command)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_is_locked_by_a_hash_and_names_no_registry() -> None:
    packages = json.loads((ROOT / "web/package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {name for name, package in packages.items() if name and "integrity" not in package} == set()
    assert {name for name, package in packages.items() if "resolved" in package} == set()


def test_the_page_is_small() -> None:
    files = [STATIC / name for name in _files(STATIC)]
    assert sum(file.stat().st_size for file in files) <= MOST_BYTES
    assert len(files) <= MOST_FILES


def _files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
