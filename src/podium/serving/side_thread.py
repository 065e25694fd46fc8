"""Runs a function on a thread beside the event loop, until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class SideThread:
    """A daemon thread. What runs on it ends soon after `ended` is set."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self.ended = threading.Event()

    def start(self, run: Callable[..., None], *args: Any) -> None:
        self.ended.clear()
        self._thread = threading.Thread(target=run, args=args, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.ended.set()
        if self._thread is not None:
            self._thread.join(1.0)
            self._thread = None
