"""Registers Podium's environments with Gymnasium when both are imported, whichever comes first.

`gymnasium.make("podium_lab:Podium/Scheduling-v0")` imports `podium_lab` and then looks the name up. Importing Gymnasium
takes a third of a second, which `podium simulate` should not pay, so `podium_lab` doesn't import it: where Gymnasium is
there, the environments are registered at once, else as soon as it's imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

SCHEDULING = "Podium/Scheduling-v0"
EXACT = "podium_lab.environments.scheduling_env:SchedulingEnv"
BATCHED = "podium_lab.environments.vector_env:SchedulingVectorEnv"


def register() -> None:
    """Register now, or when Gymnasium is imported."""
    if "gymnasium" in sys.modules:
        _register(sys.modules["gymnasium"])
    else:
        sys.meta_path.insert(0, _WhenImported())


def _register(gymnasium: Any) -> None:
    if SCHEDULING not in gymnasium.registry:
        gymnasium.register(id=SCHEDULING, entry_point=EXACT, vector_entry_point=BATCHED)


class _WhenImported(MetaPathFinder):
    """Finds Gymnasium as any import would, and registers once it's loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            _register(module)

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
