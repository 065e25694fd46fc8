"""Prepares resource slices: taints get the time they were added, and fields behind closed feature gates are dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules

_CLOSED_LISTS: Final = ("ints", "bools", "strings", "versions")  # DRAListTypeAttributes
_CLOSED_MAPPINGS: Final = "nodeAllocatableResourceMappings"  # DRANodeAllocatableResources


def _prepare_slice(obj: JsonObject, context: WriteContext) -> None:
    for device in _devices(obj):
        device.pop(_CLOSED_MAPPINGS, None)
        for attribute in (device.get("attributes") or {}).values():
            for field in _CLOSED_LISTS:
                attribute.pop(field, None)
        for taint in device.get("taints") or ():
            if taint.get("timeAdded") is None:
                taint["timeAdded"] = context.now()


def _prepare_update(new: JsonObject, _old: JsonObject, context: WriteContext) -> None:
    _prepare_slice(new, context)


def _devices(obj: JsonObject) -> Iterator[JsonObject]:
    yield from (obj.get("spec") or {}).get("devices") or ()


RESOURCE_SLICE_RULES: Final = KindRules(
    prepare_for_create=_prepare_slice, prepare_for_update=_prepare_update, returns_deleted=True, generation=True
)
