"""Finds the test bed of a source checkout, for benchmarks that need a real API server.

It is no part of the installed package: it builds Kubernetes from source and is made for tests. So it is looked for when
a benchmark asks for it, from the working directory upwards and then where the package itself lies.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

TEST_BED = Path("tests", "testbed", "cluster.py")


class NoTestBedError(Exception):
    """There is no test bed here, or it cannot run; the text says why and what to do."""


def load_test_bed(start: Path | None = None) -> ModuleType:
    """The package `tools.testbed` of the checkout around `start` (the working directory), or of this package."""
    root = next((folder for folder in _folders(start or Path.cwd()) if (folder / TEST_BED).is_file()), None)
    if root is None:
        raise NoTestBedError(
            "no test bed was found, which builds and starts the real API server and kube-scheduler: "
            "run this in a source checkout of Podium, where tools/testbed lies"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return importlib.import_module("tools.testbed")
    except ImportError as error:
        raise NoTestBedError(
            f"{root / TEST_BED.parent} cannot be imported ({error}): "
            "install what development needs with pip install -e '.[dev]'"
        ) from None


def _folders(start: Path) -> Iterator[Path]:
    for path in (start.resolve(), Path(__file__).resolve().parent):
        yield path
        yield from path.parents
