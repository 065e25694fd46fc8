"""Keeps decisions of a real kube-scheduler in one small file, so that they can be compared where it is not built.

    python -m tools.parity --record --kubernetes 1.35 --cases 2000 --seed 1     # writes recorded/1.35.json.xz
    python -m tools.parity --recorded --kubernetes 1.35                         # Podium against that file

Most objects stand unchanged in many cases, so each is written once and cases refer to it by number. What the server
made by chance is left out or shortened: versions, managed fields, uids.
"""

import lzma
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from tools.parity.case import Case, Decision

FOLDER: Final = Path(__file__).parent / "recorded"
_LEFT_OUT: Final = ("managedFields", "resourceVersion", "generation")
_UID: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_Obj = dict[str, Any]


class _RecordedCase(msgspec.Struct, frozen=True):
    name: str
    theme: str
    objects: list[int]
    pod: int
    config: int
    start_index: int
    decision: _Obj


class _Recording(msgspec.Struct, frozen=True):
    version: str
    """The release that decided, as v1.35.4."""
    command: str
    """What wrote the file."""
    objects: list[_Obj]
    configs: list[_Obj]
    cases: list[_RecordedCase]


def recording_of(minor: str) -> Path:
    """Where the decisions of a minor are kept."""
    return FOLDER / f"{minor}.json.xz"


def write_recording(path: Path, cases: Iterable[Case], version: str, command: str) -> None:
    """Write the cases of one release to a file."""
    objects: dict[bytes, int] = {}
    configs: dict[bytes, int] = {}
    recorded = [
        _RecordedCase(
            name=case.name,
            theme=case.theme,
            objects=[_number(objects, _lasting(each)) for each in case.objects],
            pod=_number(objects, _lasting(case.pod)),
            config=_number(configs, case.config),
            start_index=case.start_index,
            decision=asdict(case.decision),
        )
        for case in cases
    ]
    whole = _Recording(version, command, _decoded(objects), _decoded(configs), recorded)
    uids: dict[bytes, bytes] = {}
    text = _UID.sub(lambda match: uids.setdefault(match[0], b"uid-%d" % len(uids)), msgspec.json.encode(whole))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


def read_recording(path: Path) -> list[Case]:
    """The cases of a file; they share their objects, so do not change them."""
    found = msgspec.json.decode(lzma.decompress(path.read_bytes()), type=_Recording)
    minor = found.version.removeprefix("v").rpartition(".")[0]
    return [
        Case(
            name=each.name,
            theme=each.theme,
            objects=[found.objects[number] for number in each.objects],
            pod=found.objects[each.pod],
            config=found.configs[each.config],
            start_index=each.start_index,
            decision=Decision(**each.decision),
            kubernetes=minor,
        )
        for each in found.cases
    ]


def _lasting(obj: _Obj) -> _Obj:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _LEFT_OUT}
    return {**obj, "metadata": metadata}


def _decoded(table: dict[bytes, int]) -> list[_Obj]:
    return [msgspec.json.decode(each) for each in table]


def _number(table: dict[bytes, int], obj: _Obj) -> int:
    return table.setdefault(msgspec.json.encode(obj, order="sorted"), len(table))
