"""Runs a command's coroutine to its end."""

from collections.abc import Coroutine
from typing import Any


def run_to_end(main: Coroutine[Any, Any, int]) -> int:
    """The exit code of a command that serves."""
    import asyncio

    from podium.serving.environment import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
