"""Writes what came of a run as MessagePack, the same bytes for the same run, and reads it back."""

from __future__ import annotations

import msgspec
import numpy as np

from podium_lab.simulator.figures import COLUMNS
from podium_lab.simulator.pod_classes import CLASS_FIGURES, ClassResult
from podium_lab.simulator.run import RunResult
from podium_lab.units.unit import DamagedError


class RunPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run's result as plain data; numbers are little-endian."""

    profile: str
    seed: int
    columns: tuple[str, ...]
    table: bytes
    """float64[checkpoints, columns]."""
    unplaced: list[tuple[str, int]]
    waits: bytes
    """int64[bins]."""
    notes: tuple[str, ...]
    classes: list[tuple[str, str]]
    class_figures: bytes
    """float64[classes, CLASS_FIGURES]."""


def encode_run(run: RunResult) -> bytes:
    figures = [[each.figures[name] for name in CLASS_FIGURES] for each in run.classes]
    return msgspec.msgpack.encode(
        RunPayload(
            run.profile,
            run.seed,
            tuple(COLUMNS),
            run.table.astype("<f8").tobytes(),
            list(run.unplaced.items()),
            run.waits.astype("<i8").tobytes(),
            run.notes,
            [(each.by, each.name) for each in run.classes],
            np.array(figures, dtype="<f8").tobytes(),
        )
    )


def decode_run(payload: bytes) -> RunResult:
    """The run; raises DamagedError where the payload is not one of this version."""
    try:
        found = _DECODER.decode(payload)
        if found.columns != tuple(COLUMNS):
            raise DamagedError("has other columns than this Podium")
        table = np.frombuffer(found.table, dtype="<f8").reshape(-1, len(COLUMNS))
        figures = np.frombuffer(found.class_figures, dtype="<f8").reshape(len(found.classes), len(CLASS_FIGURES))
        waits = np.frombuffer(found.waits, dtype="<i8")
    except (msgspec.DecodeError, ValueError):
        raise DamagedError("holds no run of a simulation") from None
    classes = tuple(
        ClassResult(by, name, dict(zip(CLASS_FIGURES, row, strict=True)))
        for (by, name), row in zip(found.classes, figures.tolist(), strict=True)
    )
    unplaced = dict(found.unplaced)
    return RunResult(found.profile, found.seed, table, unplaced, waits, found.notes, classes)


_DECODER = msgspec.msgpack.Decoder(RunPayload)
