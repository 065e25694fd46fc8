"""Runs a command's coroutine to its end."""

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


def run_to_end(main: Coroutine[Any, Any, int]) -> int:
    """The exit code of a command that serves; on uvloop where there is one, because requests take less time on it."""
    import asyncio

    with suppress(ImportError):
        import uvloop

        return uvloop.run(main)
    return asyncio.run(main)
