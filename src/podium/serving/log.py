"""Formats the log of a running process: lines for people at a terminal, JSON objects for a cluster that collects them.

What is given as `extra={"fields": {…}}` stands in the JSON beside the message. Whatever is logged, by Podium or by a
library, passes here last: credentials in it are hidden, and control characters are made visible. aiohttp logs requests
that are no HTTP with a traceback that quotes them; of those nothing is quoted, and they are only shown at level debug.
"""

import logging
import sys
from typing import Any

import msgspec
from aiohttp.http_exceptions import HttpProcessingError

from podium.config.secrets import redacted
from podium.framework.plugin_failures import PluginFailure
from podium.kube.printable import LONGEST, printable, printable_json, printable_lines, shortened

LOG = logging.getLogger("podium")

FORMATS = ("text", "json")
LEVELS = ("trace", "debug", "info", "warning", "error")
TRACE = 5
"""Below debug: a line for every node of every answer."""
logging.addLevelName(TRACE, "TRACE")
LIBRARIES = ("aiohttp", "asyncio", "concurrent", "jax", "matplotlib", "PIL", "ray")
"""Libraries that Podium brings along: of what they log, only warnings concern its users."""


def set_up(form: str, level: str) -> None:
    """Send the log to standard error as `text` or `json`.

    What plugins log, by whatever logger, goes the same way at the same level; what `LIBRARIES` log, from warnings on.
    """
    handler = PodiumHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text("%(asctime)s %(levelname)-7s %(message)s"))
    handler.addFilter(_without_request)
    LOG.handlers[:] = [handler]
    LOG.setLevel(level.upper())
    LOG.propagate = False
    root = logging.getLogger()
    root.setLevel(level.upper())
    for library in LIBRARIES:
        logging.getLogger(library).setLevel(max(logging.WARNING, root.level))
    root.handlers[:] = [*(each for each in root.handlers if not isinstance(each, PodiumHandler)), handler]


def log_failure(failure: PluginFailure) -> None:
    """Log the first failure of its kind; all are counted in podium_plugin_failures_total."""
    error = None if failure.is_wrong_answer else (type(failure.error), failure.error, failure.frames)
    LOG.error("%s; later ones of this kind are only counted", failure, exc_info=error)


LONGEST_TRACE = 8 * LONGEST


class PodiumHandler(logging.StreamHandler[Any]):
    """The one handler of a process's log."""


def _without_request(record: logging.LogRecord) -> bool:
    """Whether to log it; a report of a malformed request loses what it quotes."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if not isinstance(error, HttpProcessingError):
        return True
    record.msg, record.args = f"a malformed request was refused: {type(error).__name__}", ()
    record.exc_info = record.exc_text = None
    return LOG.isEnabledFor(logging.DEBUG)


class _Text(logging.Formatter):
    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler's formatter may have left its own
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        record.message = _safe(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802  (logging's name)
        return _safe_lines(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802  (logging's name)
        return _safe_lines(stack_info)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "message": _safe_json(record.getMessage()),
        }
        if (finding := getattr(record, "shadow", None)) is not None:
            entry["shadow"] = finding
        for name, value in getattr(record, "fields", {}).items():
            entry[name] = _safe_json(value) if isinstance(value, str) else value
        if record.exc_info:
            entry["trace"] = _safe_json(self.formatException(record.exc_info), LONGEST_TRACE)
        return printable_json(msgspec.json.encode(entry).decode())


def _safe_json(text: str, most: int = LONGEST) -> str:
    """JSON has no half characters; text from HTTP headers may."""
    return redacted(shortened(text, most)).encode(errors="backslashreplace").decode()


def _safe(text: str) -> str:
    return printable(redacted(shortened(text)))


def _safe_lines(text: str) -> str:
    return printable_lines(redacted(shortened(text, LONGEST_TRACE)))
