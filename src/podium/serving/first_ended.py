"""Waits for the first of several tasks to end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any


async def first_ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Wait until one of the tasks ends; one that failed fails the process, with its own error."""
    done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
