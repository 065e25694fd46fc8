"""Takes changed plugins and configurations in while the cluster runs.

The files are looked at four times a second. What they hold is loaded and tried first, every plugin being made once.
Then the scheduler is replaced by one that is built from it. A file that cannot be used changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.explain import explain
from podium.framework.answers import describe
from podium.kube import Pod, PodSpec
from podium_cluster.up import UpError

LOOK: Final = 0.25
"""Seconds between two looks. A change counts when it has been seen twice: until then the file is being written."""

Loaded = tuple[SchedulerConfig, Registry]


class Sources(NamedTuple):
    """The files, and what loads them; it raises UpError with a sentence."""

    files: Sequence[Path]
    load: Callable[[], Loaded]


async def take_in_changes(
    sources: Sources, replace: Callable[[SchedulerConfig, Registry], None], say: Callable[[str], None]
) -> None:
    """Look until cancelled; `replace` gets what was loaded."""
    known = last = _contents(sources.files)
    while True:
        await asyncio.sleep(LOOK)
        before, last = last, _contents(sources.files)
        if last == known or last != before:
            continue
        changed = ", ".join(path.name for path in sources.files if last[path] != known[path])
        known = last
        try:
            config, registry = sources.load()
            try_out(config, registry)
        except UpError as error:
            say(f"{changed} is not taken in, the scheduler goes on as it was: {error}")
        else:
            replace(config, registry)
            say(f"{changed} is taken in")


def _contents(files: Sequence[Path]) -> dict[Path, bytes]:
    return {path: _digest(path) for path in files}


def _digest(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""  # editors replace files: for a moment there is none


def try_out(config: SchedulerConfig, registry: Registry) -> None:
    """Make every plugin once, so that one whose __init__ fails is found out before it counts."""
    for profile in config.profiles:
        try:
            explain((), Pod(spec=PodSpec(scheduler_name=profile.scheduler_name)), config, registry)
        except Exception as error:  # whatever a plugin raises
            raise UpError(describe(error)) from error
