"""Runs a package's tests with only the packages that it may import: the others are not in the environment.

    python -m tools.alone                  # all packages in turn
    python -m tools.alone kubecel -- -x    # one of them; what follows -- is for pytest

`tools` is always there, because tests share its kit; the kit imports only `podium` at module level.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
MAY_IMPORT: Final = {
    "kubecel": (),
    "podium": ("kubecel",),
    "podium_plugins": ("kubecel", "podium"),
    "podium_cluster": ("kubecel", "podium"),
    "podium_dashboard": ("kubecel", "podium"),
    "podium_lab": ("kubecel", "podium", "podium_plugins"),
}
"""As in the contracts of pyproject.toml; a package may also use what those that it imports import."""
LANE: Final = ("-m", "not testbed and not long")
WITHOUT_SOURCES: Final = f"import sys\nsys.path[:] = [each for each in sys.path if each != {str(ROOT / 'src')!r}]\n"
"""An editable install puts all packages on the path."""


def main() -> int:
    given = sys.argv[1:]
    names, _, more = (given, "", []) if "--" not in given else _split(given)
    failed = [name for name in names or MAY_IMPORT if run(name, more) != 0]
    print(f"alone: {len(failed)} of {len(names or MAY_IMPORT)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


def _split(given: list[str]) -> tuple[list[str], str, list[str]]:
    at = given.index("--")
    return given[:at], "--", given[at + 1 :]


def run(package: str, more: list[str]) -> int:
    """Import the package and run its folder of tests."""
    with tempfile.TemporaryDirectory(prefix="podium-alone-") as folder:
        for name in (package, *MAY_IMPORT[package]):
            Path(folder, name).symlink_to(ROOT / "src" / name)
        Path(folder, "sitecustomize.py").write_text(WITHOUT_SOURCES)
        environment = {**os.environ, "PYTHONPATH": folder}
        missing = sorted(MAY_IMPORT.keys() - {package, *MAY_IMPORT[package]})
        print(f"alone: {package} without {', '.join(missing)}", flush=True)
        check = f"import {package}, importlib.util as u; assert not any(map(u.find_spec, {missing!r}))"
        if subprocess.run([sys.executable, "-c", check], cwd=ROOT, env=environment, check=False).returncode != 0:
            return 1
        plain = ["--noconftest", "-p", "no:podium.testing.fixtures"] if package == "kubecel" else []
        tests = [sys.executable, "-m", "pytest", "-n", "2", *LANE, *plain, *more, f"tests/{package}"]
        return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
