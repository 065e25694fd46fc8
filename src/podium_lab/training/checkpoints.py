"""Keeps a training's state in a file, so that one that was stopped goes on as if it had not been.

The file is an .npz of all arrays, under numbers, with the digest of the settings; another training's is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np

from podium_lab.learning.extra import LearningError, needed

T = TypeVar("T")


def save(path: Path, digest: str, state: Any, beside: dict[str, Any]) -> None:
    """Write arrays of any nested record, and plain values beside them."""
    leaves = needed("jax", "train").tree.leaves(state)
    arrays = {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez(file, about=np.array(json.dumps({"digest": digest, **beside})), **arrays)  # type: ignore[arg-type]
    partial.replace(path)


def restore(path: Path, digest: str, like: T) -> tuple[T, dict[str, Any]] | None:
    """The state of a training with these settings, shaped like the given one; None where there is no file."""
    if not path.exists():
        return None
    jax = needed("jax", "train")
    leaves, structure = jax.tree.flatten(like)
    try:
        with np.load(path, allow_pickle=False) as found:
            about: dict[str, Any] = json.loads(str(found["about"]))
            arrays = [found[str(number)] for number in range(len(found.files) - 1)]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        raise LearningError(f"{path}: is no checkpoint of podium train; write another --out, or remove it") from None
    fits = len(arrays) == len(leaves) and all(
        mine.shape == np.shape(own) and mine.dtype == own.dtype for mine, own in zip(arrays, leaves, strict=True)
    )
    if about.get("digest") != digest or not fits:
        problem = "belongs to a training with other settings; write another --out, or remove it"
        raise LearningError(f"{path}: {problem}")
    return jax.tree.unflatten(structure, map(jax.numpy.asarray, arrays)), about
