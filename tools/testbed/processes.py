"""Starts a component as a child process that cannot outlive the tests, with its output in a file.

A test run may end by an exception, a Ctrl-C or a SIGKILL; an etcd or API server left running would eat memory for
days. So a child asks the kernel to be killed when its parent dies (Linux; elsewhere only the orderly stop applies).
The request has to be made in the child before it becomes the component, which a few lines of Python do and then exec:
a `preexec_fn` would run between fork and exec of a process that has threads, which Python warns about.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_BECOME = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the test process ended before its child had started")
os.execv(sys.argv[2], sys.argv[2:])
"""

# The kernel sends the death signal when the *thread* that started the child ends, so all children are started by one
# thread that lives as long as the interpreter: callers may start components from threads of their own.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="testbed-starter")


class ComponentFailed(Exception):  # noqa: N818  (what happened, as its reader would say it)
    """A component ended, or did not become ready in time; the text holds the end of its log."""


class Component:
    """A running program: `pid`, `log_path`, `url` where it serves HTTPS, and ways to end it, gently or not."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log_path: Path,
        *,
        url: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log_path = log_path
        self.url = url
        arguments = [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), *map(str, command)]
        with log_path.open("ab") as log:
            self._popen = _starter.submit(
                subprocess.Popen,
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=log_path.parent,
                env=None if environment is None else {**os.environ, **environment},
            ).result()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        """What the program ended with, None while it runs; the negative number of the signal that killed it."""
        return self._popen.poll()

    def wait_until_ready(self, ready: Callable[[], bool], timeout: float) -> None:
        """Ask `ready` again and again until it says yes; raise ComponentFailed if the program ends or time does."""
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.running:
                raise ComponentFailed(f"{self.name} ended with {self._popen.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ComponentFailed(f"{self.name} was not ready after {timeout:.0f} s:\n{self.log_tail()}")
            time.sleep(0.02)

    def log_tail(self, characters: int = 3000) -> str:
        """The end of what the program printed."""
        with self.log_path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - characters))
            return log.read().decode(errors="replace")

    def log_text(self) -> str:
        """All that the program printed so far."""
        return self.log_path.read_text(errors="replace")

    def pause(self) -> None:
        """Stop the program in its tracks (SIGSTOP): it does nothing and notices nothing until `resume`."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused program go on, as if no time had passed."""
        self._popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the program at once (SIGKILL), with no chance to say goodbye."""
        self._popen.kill()
        self._popen.wait()

    def wait(self, timeout: float = 30.0) -> int:
        """What the program ends with by itself; ComponentFailed if it still runs after `timeout` seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ComponentFailed(f"{self.name} still ran after {timeout:.0f} s:\n{self.log_tail()}") from None

    def terminate(self) -> None:
        """Ask the program to end and return at once."""
        if self.running:
            self._popen.terminate()
            self.resume()  # a paused program could not even hear that it is to end

    def stop(self, grace: float = 3.0) -> None:
        """End the program, by force if it takes longer than `grace` seconds; harmless when it has ended already."""
        self.terminate()
        try:
            self._popen.wait(grace)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
