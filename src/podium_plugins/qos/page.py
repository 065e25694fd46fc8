"""Answers the QoS page: how controllers stand, as text for curl, JSON for programs and a table for browsers.

    /               one line per controller; ?layout=slots: one per slot
    /report         what experiments report of the run so far

Any other path answers as / does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import Any, Final, NamedTuple

import msgspec

from podium.framework.plugin import PageAnswer, PluginPage
from podium_plugins.qos.table import (
    CONTROLLER_COLUMNS,
    SLOT_COLUMNS,
    QosRow,
    controller_cells,
    controllers_text,
    plain,
    slot_cells,
    slots_text,
)

PORT: Final = 10000
EVERY: Final = 2
"""Seconds after which a browser asks again."""


class QosSource(NamedTuple):
    """Where the page gets its numbers from."""

    controllers: Callable[[], list[QosRow]]
    slots: Callable[[], list[QosRow]]
    report: Callable[[], dict[str, Any]]


def qos_page(source: QosSource) -> PluginPage:
    return PluginPage("qos", "QoS page", PORT, partial(_answer, source))


def _answer(source: QosSource, path: str, query: Mapping[str, str], accepts: str) -> PageAnswer:
    if path == "/report":
        return _json(source.report())
    by_slot = query.get("layout") == "slots"
    rows = source.slots() if by_slot else source.controllers()
    if "application/json" in accepts:
        return _json([plain(row) for row in rows])
    if "text/html" in accepts:
        return PageAnswer("text/html", _html(rows, by_slot=by_slot))
    return PageAnswer("text/plain", slots_text(rows) if by_slot else controllers_text(rows))


def _json(value: Any) -> PageAnswer:
    return PageAnswer("application/json", msgspec.json.encode(value))


def _html(rows: list[QosRow], *, by_slot: bool) -> str:
    """The same table, which asks for itself again every two seconds."""
    columns, cells = (SLOT_COLUMNS, slot_cells) if by_slot else (CONTROLLER_COLUMNS, controller_cells)
    body = []
    for row in rows:
        state = "met" if row.qos >= row.slo else "broken"
        shown = "".join(f"<td>{escape(cell.strip())}</td>" for cell in cells(row))
        body.append(f'<tr class="{state}">{shown}</tr>')
    head = "".join(f"<th>{escape(name)}</th>" for name, _width in columns)
    style = (
        "body{font:14px monospace;margin:2em}td,th{padding:.2em 1em;text-align:right}"
        "th{border-bottom:1px solid}.broken td{color:#b00020}"
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>QoS</title>'
        f'<meta http-equiv="refresh" content="{EVERY}"><style>{style}</style></head>'
        f"<body><table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></body></html>\n"
    )
