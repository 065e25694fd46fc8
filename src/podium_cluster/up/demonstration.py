"""Shows what `make demo` is about: once the workload is decided, explains a pod that fits nowhere."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Final

from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.up.pod_tracker import PodTracker
from podium_cluster.up.screen import Screen, counted

_LOOK: Final = 0.05
_QUIET: Final = 0.5
"""Seconds without a new pod after which a workload counts as decided."""
_LONGEST: Final = 60.0
"""Seconds after which the demonstration goes on, decided or not."""
_WIDTH: Final = 120
_REPLICATED: Final = (built_in("apps/v1", "Deployment"), built_in("apps/v1", "StatefulSet"))


async def demonstrate(api: EmbeddedApi, tracker: PodTracker, screen: Screen, kubeconfig: Path) -> None:
    """Returns when there is nothing more to show."""
    await _until_decided(api, tracker)
    refused = tracker.refused()
    screen.say(f"{counted(tracker.placed, 'pod')} placed, {len(refused)} without a node")
    if refused:
        command = ["explain", refused[0].pod, "--kubeconfig", str(kubeconfig)]
        screen.show_page(f"$ podium {' '.join(command)}", await _podium(*command))


async def _until_decided(api: EmbeddedApi, tracker: PodTracker) -> None:
    """Wait until every pod has a node or a refusal, and no new ones come for a moment."""
    end = time.monotonic() + _LONGEST
    quiet_since, seen = time.monotonic(), -1
    while time.monotonic() < end and (time.monotonic() - quiet_since < _QUIET or not tracker.pods):
        await asyncio.sleep(_LOOK)
        if tracker.pods != seen or tracker.undecided or not _made(api):
            quiet_since, seen = time.monotonic(), tracker.pods


def _made(api: EmbeddedApi) -> bool:
    """Whether every pod is there that Deployments and StatefulSets ask for."""
    return all(
        (obj.get("status") or {}).get("replicas", 0) == obj["spec"].get("replicas", 1)
        for kind in _REPLICATED
        for obj in api.list(kind)
    )


async def _podium(*arguments: str) -> str:
    """What another podium prints, as wide as this one may."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "podium",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": str(shutil.get_terminal_size((_WIDTH, 0)).columns)},
    )
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    return out.decode().rstrip()
