"""DeviceClasses: which devices claims may ask for, by selectors."""

from __future__ import annotations

from typing import Final

from kubecel.names import dns_subdomain_errors
from podium_cluster.apiserver.errors import invalid_value
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.devices.kinds import DEVICE_CLASS
from podium_cluster.apiserver.kinds.devices.parts import MOST, configuration, items, selector
from podium_cluster.apiserver.table_cells import AGE, NAME, KindTable, name_and_age
from podium_cluster.apiserver.validation.metadata import metadata_causes
from podium_cluster.apiserver.validation.resources import is_extended
from podium_cluster.apiserver.validation.wording import Causes, Obj


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from items("spec.selectors", spec.get("selectors"), MOST, selector)
    yield from items("spec.config", spec.get("config"), MOST, configuration)
    name = spec.get("extendedResourceName")
    if name is not None and "/" not in name:
        detail = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        yield invalid_value("spec.extendedResourceName", name, detail)
    elif name is not None and not is_extended(name):
        yield invalid_value("spec.extendedResourceName", name, "must be a valid extended resource name")


def _check_update(new: Obj, _old: Obj) -> Causes:
    yield from metadata_causes(new["metadata"], DEVICE_CLASS, dns_subdomain_errors)
    yield from _check(new)


DEVICE_CLASS_RECORD: Final = KindRecord(
    DEVICE_CLASS,
    KindRules(validate=_check, validate_update=_check_update, returns_deleted=True, generation="spec"),
    KindTable((NAME, AGE), name_and_age),
)
