"""Formats the log of a running process: lines for people at a terminal, JSON objects for a cluster that collects them.

What is given as `extra={"fields": {…}}` stands in the JSON beside the message.
"""

import logging
import sys
from typing import Any

import msgspec

LOG = logging.getLogger("podium")

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")


def set_up(form: str, level: str) -> None:
    """Send the log to standard error as `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text("%(asctime)s %(levelname)-7s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(level.upper())
    LOG.propagate = False


class _Text(logging.Formatter):
    default_msec_format = "%s.%03d"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if (finding := getattr(record, "shadow", None)) is not None:
            entry["shadow"] = finding
        entry.update(getattr(record, "fields", {}))
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()
