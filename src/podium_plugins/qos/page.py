"""Answers the QoS page: how controllers stand, as text for curl, JSON for programs and a table for browsers.

    /               one line per controller; ?layout=slots: one per slot
    /report         what experiments report of the run so far

Any other path answers as / does. `controller_gauges` are the same figures for /metrics.

The table has the columns and widths of the original's page, and two layouts: one line per controller (CONTROLLER,
QOS/SLO, TTV, RUNNING, WAITING, BINDING), and one per slot. In the first, TTV is the time until the SLO is violated if
nothing of the controller ran any more: E / SLO − (E + D + W).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any, Final, NamedTuple

import msgspec

from podium import Duration, LabelValues, MetricKind, PageAnswer, PluginMetric, PluginPage
from podium.kube import printable
from podium_plugins.qos.ledger import QosLedger

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


MOST_GAUGES: Final = 100


def controller_gauges(controllers: Callable[[], list[QosRow]]) -> Iterator[PluginMetric]:
    """Gauges of how controllers stand, for /metrics.

    They are bounded in number: those of the hundred controllers that are nearest to breaking their SLO, or beyond.

    Every profile's ledger sees all pods, so the numbers of one are those of all.
    """

    def read(column: str) -> dict[LabelValues, float]:
        return {(row.controller,): getattr(row, column) for row in _most_urgent(controllers())}

    for name, text, column in (
        ("podium_qos", "The share of its time that a controller ran; the most urgent controllers only.", "qos"),
        ("podium_qos_slo", "The share that it was promised.", "slo"),
        ("podium_qos_metric_seconds", "Seconds until its SLO is violated, or (below 0) that it lacks.", "metric_s"),
    ):
        yield PluginMetric(MetricKind.GAUGE, name, text, partial(read, column), ("controller",), by_profile=False)


def _most_urgent(rows: Iterable[QosRow]) -> list[QosRow]:
    known = (row for row in rows if not math.isnan(row.metric_s))
    return sorted(known, key=lambda row: (row.metric_s, row.controller))[:MOST_GAUGES]


class QosRow(NamedTuple):
    """How a controller stands, or one of its slots (`slot`); times in seconds."""

    controller: str
    slot: int | None
    approach: str
    phase: str
    slo: float
    qos: float
    ttv_s: float
    metric_s: float
    running_s: float
    discarded_s: float
    waiting_s: float
    binding_s: float
    preemption_overhead: float
    acceptable_overhead: float
    replicas: int
    running: int
    pending: int
    gone_s: float | None = None
    """How long ago the last pod of a controller that has none left ended; its figures are those of that moment."""


def controller_rows(ledger: QosLedger, now: float) -> list[QosRow]:
    """One row per controller, by name; its metric is that of its most urgent pod."""
    rows = []
    for account in sorted(ledger.accounts.values(), key=lambda each: (each.name, each.key)):
        slots = list(_slot_rows(ledger, account.key, now))
        quality, sums = ledger.quality(account, None, now)
        ttv = math.inf
        if account.slo > 0:
            ttv = sums.effective / account.slo - (sums.effective + sums.discarded + sums.waiting)
        worst = min(slots, key=lambda row: row.metric_s, default=None)
        rows.append(
            QosRow(
                account.name,
                None,
                account.approach,
                "" if worst is None else worst.phase,
                account.slo,
                quality,
                ttv,
                math.inf if worst is None else worst.metric_s,
                sums.effective,
                sums.discarded,
                sums.waiting,
                sums.binding,
                math.nan if worst is None else worst.preemption_overhead,
                math.nan if worst is None else worst.acceptable_overhead,
                account.replicas,
                account.running,
                account.pending,
                None if account.open else max(0.0, now - account.idle_since),
            )
        )
    return rows


def slot_rows(ledger: QosLedger, now: float) -> list[QosRow]:
    """One row per slot that a pod occupies, by name and slot."""
    accounts = sorted(ledger.accounts.values(), key=lambda each: (each.name, each.key))
    return [row for account in accounts for row in _slot_rows(ledger, account.key, now)]


def _slot_rows(ledger: QosLedger, key: str, now: float) -> Iterator[QosRow]:
    account = ledger.accounts[key]
    for pod in account.slots:
        if pod is None:
            continue
        quality, sums = ledger.quality(account, pod, now)
        slo = pod.promise.slo
        ttv = sums.effective / slo - (sums.effective + sums.discarded + sums.waiting) if slo > 0 else math.inf
        overhead, acceptable = ledger.overhead(pod.uid, now)
        yield QosRow(
            account.name,
            pod.slot,
            account.approach,
            pod.phase,
            slo,
            quality,
            ttv,
            ledger.metric(pod.uid, now),
            sums.effective,
            sums.discarded,
            sums.waiting,
            sums.binding,
            overhead,
            acceptable,
            account.replicas,
            account.running,
            account.pending,
        )


Column = tuple[str, int]
"""A heading, and the width of what stands below it."""

CONTROLLER_COLUMNS: Final[tuple[Column, ...]] = (
    ("CONTROLLER", 20),
    ("QOS/SLO", 9),
    ("TTV", 20),
    ("RUNNING", 20),
    ("WAITING", 20),
    ("BINDING", 20),
)
SLOT_COLUMNS: Final[tuple[Column, ...]] = (
    ("CONTROLLER", 20),
    ("QOS/SLO", 9),
    ("PREEMPTION OVERHEAD", 19),
    ("QOS APPROACH", 15),
    ("POD PHASE", 15),
    ("QOS METRIC", 15),
    ("EFF RUNNING", 20),
    ("DIS RUNNING", 20),
    ("WAITING", 20),
    ("BINDING", 20),
)


def controller_cells(row: QosRow) -> tuple[str, ...]:
    """What stands in each column; names are as their owners wrote them, so they are made printable."""
    times = (row.ttv_s, row.running_s, row.waiting_s, row.binding_s)
    gone = "" if row.gone_s is None else " (gone)"
    return f"{printable(row.controller)}{gone}", _quality(row), *map(duration_text, times)


def slot_cells(row: QosRow) -> tuple[str, ...]:
    """The same, of the row of a slot."""
    times = (row.running_s, row.discarded_s, row.waiting_s, row.binding_s)
    return (
        printable(f"{row.controller}-{row.slot}"),
        _quality(row),
        f"{_number(row.preemption_overhead, 2):>9}/{_number(row.acceptable_overhead, 2):<9}",
        printable(row.approach),
        printable(row.phase),
        _number(row.metric_s, 4),
        *map(duration_text, times),
    )


def controllers_text(rows: Iterable[QosRow]) -> str:
    """The table of controllers.

    >>> row = QosRow("50_slo_1", None, "", "", .5, .4364, -142.541, 0, 493, 0, 636, .591, 0, 0, 1, 1, 0)
    >>> controllers_text([row]).splitlines()[1].split()
    ['50_slo_1', '0.44/0.50', '-2m22.541s', '8m13s', '10m36s', '591ms']
    """
    return _text(CONTROLLER_COLUMNS, map(controller_cells, rows))


def slots_text(rows: Iterable[QosRow]) -> str:
    """The table of slots."""
    return _text(SLOT_COLUMNS, map(slot_cells, rows))


def plain(row: QosRow) -> dict[str, Any]:
    """A row as JSON can say it: what is no finite number is text (+Inf, -Inf, NaN)."""
    return {
        name: _number(value, 6) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row._asdict().items()
        if value is not None
    }


def duration_text(seconds: float) -> str:
    """A duration as Go writes it: whole seconds above one, else whole milliseconds.

    >>> [duration_text(each) for each in (0.5914, 1.0, 1.001, 2.4, 7446.9, -0.0015, -0.0005, -142.541, 90000)]
    ['591ms', '1s', '1s', '2s', '2h4m6s', '-1ms', '0s', '-2m22.541s', '25h0m0s']
    """
    if not math.isfinite(seconds):
        return _number(seconds, 2)
    unit = 10**9 if seconds > 1 else 10**6
    nanoseconds = round(seconds * 10**9)
    return str(Duration(math.trunc(nanoseconds / unit) * unit))


def _text(columns: Sequence[Column], rows: Iterable[tuple[str, ...]]) -> str:
    headings, widths = zip(*columns, strict=True)
    lines = (
        "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)) for row in (headings, *rows)
    )
    return "".join(f"{line}\n" for line in lines)


def _quality(row: QosRow) -> str:
    return f"{row.qos:.2f}/{row.slo:.2f}"


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return "NaN"
    return ("+Inf" if value > 0 else "-Inf") if math.isinf(value) else f"{value:.{digits}f}"
