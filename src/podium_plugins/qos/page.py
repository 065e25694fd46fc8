"""Serves the QoS page: how controllers stand, as text for curl, JSON for programs and a table for browsers.

    /               one line per controller; ?layout=slots: one per slot
    /report         what experiments report of the run so far

Any other path answers as / does. It listens on loopback unless asked otherwise, without authentication. A port that is
taken is reported, and scheduling goes on without the page.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import web

from podium.serving.browser_guard import FORBIDDEN, BrowserGuard
from podium.serving.web_port import WebPort
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
HOST: Final = "127.0.0.1"
EVERY: Final = 2
"""Seconds after which a browser asks again."""
GRACE: Final = 1.0
IDLE_TIMEOUT: Final = 30.0
"""Seconds in which a connection must bring the whole head of its next request, or it is closed."""
MOST_CONNECTIONS: Final = 64
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": "podium"}


class QosSource(NamedTuple):
    """Where the page gets its numbers from."""

    controllers: Callable[[], list[QosRow]]
    slots: Callable[[], list[QosRow]]
    report: Callable[[], dict[str, Any]]


class QosPage:
    """The server of the page."""

    def __init__(self, source: QosSource, *, host: str = HOST, port: int = PORT) -> None:
        self._source = source
        self._host = host
        self.port = port
        self._guard = BrowserGuard(host, own_pages=True)
        self._served: WebPort | None = None

    async def start(self) -> str | None:
        """Listen; what is wrong where that cannot be done."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._served = WebPort(app, most=MOST_CONNECTIONS, idle_timeout=IDLE_TIMEOUT, grace=GRACE)
        try:
            self.port = await self._served.start(self._host, self.port)
        except OSError as error:
            return f"the QoS page cannot be served on {self._host}:{self.port}: {error.strerror or error}"
        return None

    async def stop(self) -> None:
        if self._served is not None:
            await self._served.stop()
            self._served = None

    async def _answer(self, request: web.Request) -> web.Response:
        headers = request.headers
        refusal = self._guard.refusal(headers.get("Host"), headers.get("Origin"), headers.get("Sec-Fetch-Site"))
        if refusal is not None:
            return web.Response(status=FORBIDDEN, text=f"{refusal}\n", headers=_HEADERS)
        accepts = headers.get("Accept", "")
        if request.path == "/report":
            return _json(self._source.report())
        by_slot = request.query.get("layout") == "slots"
        rows = self._source.slots() if by_slot else self._source.controllers()
        if "application/json" in accepts:
            return _json([plain(row) for row in rows])
        if "text/html" in accepts:
            return web.Response(text=_html(rows, by_slot=by_slot), content_type="text/html", headers=_HEADERS)
        return web.Response(text=slots_text(rows) if by_slot else controllers_text(rows), headers=_HEADERS)


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json", headers=_HEADERS)


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
