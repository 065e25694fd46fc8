"""Converts `metadata.managedFields` (who owns which fields) between its wire form and sets of paths.

A manager is known by its name, its operation (Apply or Update), the subresource it writes through and, for updates,
the API version. Two writes of the same manager share an entry; an entry without fields disappears.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from podium_cluster.apiserver.writes.patches.field_sets import Paths, from_wire, to_wire

MOST_UPDATERS = 10
ANCIENT = "ancient-changes"


class Manager(NamedTuple):
    name: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identity(self) -> Manager:
        """Appliers keep their entry across versions."""
        return self._replace(api_version="") if self.operation == "Apply" else self

    @property
    def order(self) -> str:
        """Conflicts are listed in the order of this text, which is how the API server names a manager to itself."""
        named = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({key: value for key, value in named.items() if value}).decode()


class ManagedFieldsEntry(NamedTuple):
    fields: Paths
    api_version: str
    time: str | None


Managed = dict[Manager, ManagedFieldsEntry]


def applier(name: str, subresource: str) -> Manager:
    return Manager(name, "Apply", "", subresource)


def updater(name: str, api_version: str, subresource: str) -> Manager:
    return Manager(name or "unknown", "Update", api_version, subresource)


def decode(entries: Iterable[dict[str, Any]] | None) -> Managed:
    """Raises ValueError for an entry that is none."""
    managed: Managed = {}
    for entry in entries or ():
        version = entry.get("apiVersion", "")
        operation = entry.get("operation", "")
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError("fieldsType must be FieldsV1")
        manager = Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        managed[manager.identity] = ManagedFieldsEntry(
            from_wire(entry.get("fieldsV1") or {}), version, entry.get("time")
        )
    return managed


def encode(managed: Managed) -> list[dict[str, Any]]:
    ordered = sorted(managed.items(), key=lambda item: (item[0].operation, item[1].time or "", *_names(*item)))
    return [_wire(manager, entry) for manager, entry in ordered]


def _names(manager: Manager, entry: ManagedFieldsEntry) -> tuple[str, str, str]:
    return manager.name, entry.api_version, manager.subresource


def _wire(manager: Manager, entry: ManagedFieldsEntry) -> dict[str, Any]:
    return {
        **({"manager": manager.name} if manager.name else {}),
        "operation": manager.operation,
        "apiVersion": entry.api_version,
        **({"time": entry.time} if entry.time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": to_wire(entry.fields),
        **({"subresource": manager.subresource} if manager.subresource else {}),
    }


def capped(managed: Managed) -> Managed:
    """At most ten updaters are remembered one by one: the oldest become one entry per API version."""
    updaters = [manager for manager in managed if manager.operation == "Update"]
    if len(updaters) <= MOST_UPDATERS:
        return managed
    merged = dict(managed)
    updaters.sort(key=lambda manager: (managed[manager].time or "", manager.order))
    first: dict[str, Manager] = {}
    left = len(updaters)
    for manager in updaters:
        if left <= MOST_UPDATERS:
            break
        entry = merged[manager]
        if entry.api_version not in first:
            first[entry.api_version] = manager
            continue
        bucket = Manager(ANCIENT, "Update", entry.api_version, "")
        if bucket not in merged:
            merged[bucket] = merged.pop(first[entry.api_version])
        merged[bucket] = ManagedFieldsEntry(merged[bucket].fields | entry.fields, entry.api_version, entry.time)
        del merged[manager]
        left -= 1
    return merged


def timestamp(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
