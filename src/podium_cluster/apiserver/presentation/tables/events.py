"""Tabulates events, in both spellings: core/v1 (involvedObject, message, firstTimestamp, count) and events.k8s.io/v1
(regarding, note, deprecatedFirstTimestamp, deprecatedCount). A series tells when it was last seen and how often.
"""

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.tables.columns import NAME, Cells, KindTable, TableColumn, Tables, wide
from podium_cluster.apiserver.presentation.tables.formats import since

_COLUMNS: Final = (
    TableColumn("Last Seen", "How long ago it last happened."),
    TableColumn("Type", "Normal or Warning."),
    TableColumn("Reason", "What happened, in one word."),
    TableColumn("Object", "What it happened to."),
    wide("Subobject", "The part of the object."),
    wide("Source", "Who reported it."),
    TableColumn("Message", "What happened."),
    wide("First Seen", "How long ago it first happened."),
    wide("Count", "How often it happened."),
    NAME._replace(priority=1),
)
# What a field of core/v1 is called in events.k8s.io/v1.
_OTHER_NAME: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}


def _event(event: JsonObject, now: datetime) -> Cells:
    first = since(_field(event, "firstTimestamp") or event.get("eventTime"), now)
    last = _field(event, "lastTimestamp")
    seen, count = since(last, now) if last else first, _field(event, "count") or 1
    series = event.get("series")
    if series is not None:
        seen, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    target = _field(event, "involvedObject") or {}
    kind, name = str(target.get("kind", "")).lower(), target.get("name")
    return [
        seen,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        _source(event),
        str(_field(event, "message") or "").strip(),
        first,
        count,
        event["metadata"]["name"],
    ]


def _source(event: JsonObject) -> str:
    source = _field(event, "source") or {}
    component = source.get("component") or _field(event, "reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _field(event: JsonObject, name: str) -> Any:
    return event.get(name) or event.get(_OTHER_NAME[name])


TABLES: Final[Tables] = {
    ("", "Event"): KindTable(_COLUMNS, _event),
    ("events.k8s.io", "Event"): KindTable(_COLUMNS, _event),
}
