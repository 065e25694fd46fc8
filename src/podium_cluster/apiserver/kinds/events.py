"""Events, which are one collection under two names: core/v1 (involvedObject, message, firstTimestamp, count) and
events.k8s.io/v1 (regarding, note, deprecatedFirstTimestamp, deprecatedCount).

They are kept in the core form (store/storage_form.py). A series tells when it was last seen and how
often.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import Fields, FieldValues, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import NAME, Cells, KindTable, TableColumn, since, wide

_FIELDS: Final = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_REGARDED: Final = tuple(name.replace("involvedObject", "regarding") for name in _FIELDS[:7])
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


def _field_values(obj: dict[str, Any]) -> FieldValues:
    about = obj.get("involvedObject") or {}
    source = (obj.get("source") or {}).get("component", "") or obj.get("reportingComponent", "")
    return (
        about.get("kind", ""),
        about.get("namespace", ""),
        about.get("name", ""),
        about.get("uid", ""),
        about.get("apiVersion", ""),
        about.get("resourceVersion", ""),
        about.get("fieldPath", ""),
        obj.get("reason", ""),
        obj.get("reportingComponent", ""),
        source,
        obj.get("type", ""),
    )


EVENT: Final = built_in_kind("v1", "Event events", short="ev", fields=Fields(_FIELDS, _field_values))
EVENT_OF_EVENTS_GROUP: Final = built_in_kind(
    "events.k8s.io/v1",
    "Event events",
    short="ev",
    stored_as=EVENT,
    fields=Fields((*_REGARDED, "reason", "reportingController", "source", "type"), _field_values),
)


def _cells(event: JsonObject, now: datetime) -> Cells:
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


_RULES: Final = KindRules(update_creates=True)
_TABLE: Final = KindTable(_COLUMNS, _cells)
EVENT_RECORD: Final = KindRecord(EVENT, _RULES, _TABLE)
EVENTS_GROUP_RECORD: Final = KindRecord(EVENT_OF_EVENTS_GROUP, _RULES, _TABLE)
