"""The page "The way of a pod" is true: a traced pod goes through the files that its table names, and no others.

The way is what is on the call stack when something happens to the pod: it is read, it enters and leaves the queue, a
plugin is asked about it, it is assumed, its binding is sent, its event is queued, it comes back bound. A function that
only answers its caller is no hop. Nor are plugins, or the timer that measures a step and calls it.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from podium.client import Access
from podium.framework import SystemClock
from podium.run.assembly import RunOptions, build_process
from podium.run.process import SchedulerProcess
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.server import ApiServer
from podium_cluster.apiserver.kinds import built_in
from tests.podium.framework.runtimes import setup
from tests.podium.run.test_driver import until
from tools.testbed.objects import make_node, make_pod

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"
PAGE = (ROOT / "docs/explanation/the-way-of-a-pod.md").read_text()
MOST_FILES = 25
NODE, POD = built_in("v1", "Node"), built_in("v1", "Pod")
PLUGINS = "podium/plugins/"
TIMERS = ("podium/framework/timer.py", "podium/run/engine_metrics.py", "podium/run/timer_metrics.py")
HAPPENS = {
    ("podium/client/reading.py", "event"),
    ("podium/engine/queue/heap.py", "push"),
    ("podium/engine/queue/heap.py", "pop"),
    ("podium/cluster/state.py", "assume"),
    ("podium/client/wire.py", "send"),
    ("podium/serving/event_sender.py", "enqueue"),
    ("podium/cluster/state.py", "set_pod"),
}
"""Where something happens to a pod, beside plugins."""


class Way:
    """The files of a pod's way, in the order in which it comes to them; a profile function for `sys`."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        if event != "return":
            return
        file = _file(frame)
        if not file.startswith(PLUGINS) and (file, frame.f_code.co_name) not in HAPPENS:
            return
        if frame.f_code.co_name == "pop" and result is None:
            return  # the queue was empty
        stack = list(_callers(frame))[::-1]
        if any(each.startswith("podium_cluster/") for each in stack):
            return  # the API server, which runs on the same loop here
        for each in stack:
            if each.startswith(PLUGINS):
                return  # what a plugin calls is its own affair
            if each and not each.startswith(TIMERS):
                self.files[each] = None


def _file(frame: FrameType) -> str:
    """The file of a frame, from `src/` on; empty for any other."""
    path = Path(frame.f_code.co_filename)
    return path.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else ""


def _callers(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield _file(frame)
        frame = frame.f_back


@pytest.fixture(scope="module")
def files() -> list[str]:
    """The files on the way of two pods: the first with its signature, and one whose answers are cached."""
    return asyncio.run(_trace())


async def _trace() -> list[str]:
    way, stop = Way(), asyncio.Event()
    api = EmbeddedApi(clock=SystemClock(), rng=random.Random(1))
    server = ApiServer(api, host="127.0.0.1", port=0)
    await server.start()
    config, registry = setup(default=True, leaderElection={"leaderElect": False})
    try:
        async with AsyncExitStack() as stack, asyncio.timeout(60):
            for number in range(3):
                api.create(NODE, make_node(f"n{number}"))
            process = build_process(config, registry, Access(server.url), RunOptions(), stack)
            running = asyncio.create_task(process.run(stop))
            for number in range(4):
                if number in (0, 3):
                    sys.setprofile(way)
                api.create(POD, make_pod(f"p{number}"))
                await until(lambda number=number: _is_bound(process, number + 1))  # type: ignore[misc]
                sys.setprofile(None)
            stop.set()
            await running
    finally:
        sys.setprofile(None)
        await server.stop()
    return list(way.files)


def _is_bound(process: SchedulerProcess, pods: int) -> bool:
    """Whether so many pods are bound, and have come back from the API server with their node."""
    confirmed = sum(not placed.assumed for placed in process.live.engine.cluster.pods.values())
    return process.live.activity.bound == confirmed == pods


def test_the_table_names_the_files_that_a_pod_goes_through(files: list[str]) -> None:
    table = PAGE.partition("\n## ")[0]
    assert set(re.findall(r"^\| \d+ \| `([^`]+)`", table, re.MULTILINE)) == set(files)


def test_a_pod_goes_through_few_files(files: list[str]) -> None:
    assert len(files) <= MOST_FILES, "\n".join(files)
