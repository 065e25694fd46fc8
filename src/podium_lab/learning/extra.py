"""Imports the packages of the extras `learn` and `train`, or says how to install them."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, TypeVar, cast

F = TypeVar("F")


class LearningError(Exception):
    """What was asked for cannot be done: one sentence says why, and what to do."""


def needed(package: str, extra: str = "learn") -> Any:
    """A package of an extra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(package)
    except ImportError:
        top = package.partition(".")[0]
        raise LearningError(f"{top} is not installed; install podium[{extra}]") from None


def compiled(function: F) -> F:
    """A function compiled by Numba when it is first called; what it calls must be compiled or `inlined`."""
    return cast(F, needed("numba").njit(cache=True)(function))


def inlined(function: F) -> F:
    """Lets compiled functions call a plain one, which stays what it is."""
    return cast(F, needed("numba.extending").register_jitable(function))
