"""Starts `podium up` as its own process, as a user does."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

READY = 120.0


class PodiumUp:
    """A context manager; `output` is everything printed so far, `kubeconfig` and `url` are read from it."""

    def __init__(self, *arguments: str, home: Path) -> None:
        self._command = [sys.executable, "-m", "podium", "up", "--no-view", *arguments]
        self._environment = {**os.environ, "XDG_STATE_HOME": str(home), "COLUMNS": "120"}
        self._lines: list[str] = []
        self._printed = threading.Condition()

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self.wait_for(r"on (http://[^\s,]+)")[1]
        self.kubeconfig = Path(self.wait_for(r"export KUBECONFIG=(\S+)")[1])
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(READY)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def wait_for(self, pattern: str, timeout: float = READY) -> re.Match[str]:
        """Wait until something like this has been printed."""
        end = time.monotonic() + timeout
        with self._printed:
            while (found := re.search(pattern, self.output)) is None:
                left = end - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._reader.is_alive()):
                    raise AssertionError(f"{pattern} was not printed:\n{self.output}")
                self._printed.wait(min(left, 0.2))
        return found

    def stop(self, number: int = signal.SIGTERM) -> int:
        """The exit code after a signal."""
        self.process.send_signal(number)
        code = self.process.wait(READY)
        self._reader.join()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._printed:
                self._lines.append(line)
                self._printed.notify_all()
