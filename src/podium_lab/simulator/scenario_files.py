"""Finds the files that a scenario depends on: those that it names, and those that arguments of plugins name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.scenario import Contender, Scenario, as_written
from podium_lab.simulator.traces.azure import FLAVOURS, INTERVALS, LIFETIMES, SIZES

FILE_FIELDS = frozenset(("file", "openb", "hosts", "list", "folder", "vmr2l"))
"""Fields of a scenario whose text is a file's name."""
WRITTEN = frozenset(("log", "stateFile"))
"""Arguments of plugins that name a file which is written."""


def scenario_files(loaded: LoadedScenario, contender: Contender) -> dict[str, Path]:
    """The files and folders that a scenario with this profile names, by those names."""
    scenario: dict[str, Any] = as_written(loaded.scenario)
    named = _named({**scenario, "profiles": [as_written(contender)]})
    return {name: loaded.source.find(name) for name in named}


def argument_files(loaded: LoadedScenario, contender: Contender) -> list[str]:
    """The files that arguments of a profile's plugins name, with those that belong beside them."""
    written: Any = contender.profile
    if contender.file is not None:
        written = read_documents(loaded.source.find(contender.file))
    named = dict.fromkeys(_arguments(written))
    graphs = [str(Path(name).with_suffix(".onnx")) for name in named if name.endswith(".json")]
    return [*named, *(name for name in graphs if Path(name).is_file() and name not in named)]


def folder_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that is a workload."""
    return {name: folder / name for name in (SIZES, LIFETIMES, FLAVOURS, INTERVALS)}


def read_documents(path: Path) -> list[Any]:
    """A configuration file as plain values."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8-sig")))


def _named(value: Any, field: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if field in FILE_FIELDS or field in ("workload", "objects"):
            yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            if name not in ("profile", "description", "labels", "annotations", "spec"):
                yield from _named(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from _named(each, field)


def _arguments(value: Any, field: str = "") -> Iterator[str]:
    """Texts below `args` that name a file."""
    if isinstance(value, str):
        if field and field not in WRITTEN and len(value) < 1000 and "\n" not in value and Path(value).is_file():
            yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _arguments(each, str(name) if field else "args" if name == "args" else "")
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _arguments(each, field)


def with_paths(value: Any, paths: Mapping[str, str]) -> Any:
    """The same with the paths that files of arguments have on this machine."""
    if isinstance(value, str):
        return paths.get(value, value)
    if isinstance(value, Mapping):
        return {name: with_paths(each, paths) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_paths(each, paths) for each in value]
    return value


def run_scenario(scenario: Scenario, contender: Contender) -> dict[str, Any]:
    """What a run of one profile depends on in a scenario, as plain values: neither its name, nor other profiles."""
    written: dict[str, Any] = as_written(scenario)
    for name in ("name", "description", "seeds", "summary", "summaryAt"):
        written.pop(name, None)
    return {**written, "profiles": [as_written(contender)]}
