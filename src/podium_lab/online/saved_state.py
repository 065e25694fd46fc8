"""Writes and reads what was learnt, as text with a checksum, and keeps it in a file.

What is read is used only if all of it is right: checksum, features, sizes, finite numbers, and sums that examples can
have. A file is written beside the old one and put in its place at once, by a thread of its own: no decision waits for a
disk. Of a machine that loses power in between, the old text or a broken one may be left; the checksum tells.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from podium.kube.documents import FILE, DocumentError, read_json
from podium_lab.online.bandit import RidgeBandit

API_VERSION = "podium/online/v1"
LARGEST = 900_000
"""Characters: a ConfigMap ends at a MiB."""
MOST = 1e9
"""No sum over examples between 0 and 1, of which old ones are forgotten, is beyond this."""


class SavedModel(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The sums of one type of pods."""

    type: str
    rewards: int
    recent_error: float
    usual_error: float
    squared_error: float
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]


class SavedState(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """All that was learnt."""

    api_version: str = API_VERSION
    features: tuple[str, ...]
    classes: tuple[str, ...] = ()
    """The values of the nodes' label, in the order of their features."""
    models: tuple[SavedModel, ...] = ()
    sha256: str = ""


class StateError(Exception):
    """A text that is not what was learnt here: one sentence says why."""


def saved_model(kind: str, bandit: RidgeBandit) -> SavedModel:
    return SavedModel(
        type=kind,
        rewards=bandit.rewards,
        recent_error=bandit.recent_error,
        usual_error=bandit.usual_error,
        squared_error=bandit.squared_error,
        a=tuple(tuple(line) for line in bandit.a.tolist()),
        b=tuple(bandit.b.tolist()),
    )


def encode_state(state: SavedState) -> str:
    """The text of a state, with its checksum."""
    return msgspec.json.encode(msgspec.structs.replace(state, sha256=_checksum(state))).decode()


def decode_state(text: str | bytes, features: Sequence[str]) -> SavedState:
    """The state in a text, if these are its features; raises StateError."""
    raw = text.encode() if isinstance(text, str) else text
    if len(raw) > LARGEST:
        raise StateError(f"it is larger than {LARGEST:,} bytes")
    try:
        state = msgspec.convert(read_json(raw, bounds=FILE), SavedState)
    except (DocumentError, msgspec.ValidationError) as error:
        raise StateError(f"it is no such state: {error}") from None
    if state.api_version != API_VERSION:
        raise StateError(f'its apiVersion is "{state.api_version}"; this version reads {API_VERSION}')
    if state.sha256 != _checksum(state):
        raise StateError("its checksum is not that of its content")
    if state.features != tuple(features):
        raise StateError(f"it was learnt from other features ({', '.join(state.features)})")
    for model in state.models:
        _check(model, len(features))
    return state


def restore(bandit: RidgeBandit, model: SavedModel) -> None:
    """Have a learner go on from a model that was read."""
    errors = model.recent_error, model.usual_error, model.squared_error
    bandit.restore(np.array(model.a), np.array(model.b), model.rewards, errors)


def _check(model: SavedModel, size: int) -> None:
    errors = (model.recent_error, model.usual_error, model.squared_error)
    if len(model.b) != size or len(model.a) != size or any(len(line) != size for line in model.a):
        raise StateError(f'the model "{model.type}" has not the size of its features')
    if model.rewards < 0 or not all(0 <= each <= 1e6 for each in errors):
        raise StateError(f'the model "{model.type}" has impossible counts or errors')
    a = np.array(model.a)
    if not (np.isfinite(a).all() and np.abs(a).max() < MOST and np.abs(np.array(model.b)).max() < MOST):
        raise StateError(f'the model "{model.type}" has numbers that are not finite, or far too large')
    try:
        if not np.allclose(a, a.T):
            raise np.linalg.LinAlgError
        np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise StateError(f'the model "{model.type}" is not a sum over examples') from None


def _checksum(state: SavedState) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(state, sha256=""))).hexdigest()


class StateFile:
    """The file; what cannot be written is dropped until the next time."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="online-state")
        self._writing: Future[None] | None = None

    def read(self) -> bytes | None:
        """Its content, at most a little more than may be used; None where there is none."""
        with suppress(OSError), self._path.open("rb") as file:
            return file.read(LARGEST + 1)
        return None

    def write(self, text: str) -> bool:
        """Have the text written, unless the last one still is; whether it will be."""
        if self._writing is not None and not self._writing.done():
            return False
        self._writing = self._pool.submit(self._write, text.encode())
        return True

    def wait(self) -> None:
        """Until what was to be written is."""
        if self._writing is not None:
            self._writing.result()

    def _write(self, text: bytes) -> None:
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with suppress(OSError):
            beside.write_bytes(text)
            beside.replace(self._path)
