"""Records what happened in a run, line by line in virtual time: the same for the same seed, byte for byte."""

from __future__ import annotations

import asyncio
import logging

from tools.kit.virtual_time import current_process


class Transcript:
    """The lines of one run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, who: str, what: str) -> None:
        self.lines.append(f"{asyncio.get_running_loop().time():9.3f}  {who:<8}  {what}")

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


class LogToTranscript(logging.Handler):
    """Podium's own log, under the name of the process that wrote it; one that was killed writes no more."""

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(logging.INFO)
        self._transcript = transcript
        self.broken: list[str] = []
        """What was logged with a traceback: mistakes of Podium's own."""

    def emit(self, record: logging.LogRecord) -> None:
        process = current_process()
        if process is not None and process.killed:
            return
        name = "outside" if process is None else process.name
        message = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            message = f"{message}: {type(error).__name__}: {error}"
            self.broken.append(f"{name}: {message}")
        self._transcript.note(name, f"{record.levelname.lower()}: {message}")
