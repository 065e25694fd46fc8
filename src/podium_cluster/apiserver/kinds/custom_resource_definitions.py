"""CustomResourceDefinitions, and the rules of the kinds that they define."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import STATUS, Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.schema.definitions import definition_causes, definition_update_causes
from podium_cluster.apiserver.table_cells import CREATED_AT, NAME, Cells, KindTable, TableColumn, wide
from podium_cluster.apiserver.validation.slow_checks import checked
from podium_cluster.apiserver.write_context import WriteContext

_COLUMNS: Final = (
    NAME,
    TableColumn("Scope", "Whether its objects belong to namespaces."),
    TableColumn("Versions", "The versions that are served."),
    CREATED_AT,
    wide("Group", "The API group."),
    wide("Kind", "What its objects are called."),
    wide("ShortNames", "What kubectl also takes for it."),
    TableColumn("Established", "Whether it is served.", type="boolean", priority=1),
)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec, names = obj["spec"], obj["spec"]["names"]
    served = [each["name"] + "(storage)" * bool(each.get("storage")) for each in spec["versions"] if each.get("served")]
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return [
        obj["metadata"]["name"],
        spec["scope"],
        ",".join(sorted(served)),
        obj["metadata"].get("creationTimestamp", ""),
        spec["group"],
        names["kind"],
        ",".join(names.get("shortNames") or ()),
        any(each["type"] == "Established" and each["status"] == "True" for each in conditions),
    ]


def _definition_defaults(definition: dict[str, Any]) -> None:
    status = definition.setdefault("status", {})
    if not status.get("storedVersions"):
        stored = _stored_versions(definition.get("spec", {}).get("versions", ()))
        if stored:
            status["storedVersions"] = stored


def _names_defaults(names: dict[str, Any]) -> None:
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")


def _stored_versions(versions: Iterable[dict[str, Any]]) -> list[str]:
    return [version["name"] for version in versions if version.get("storage")][:1]


def _new_definition(definition: JsonObject, context: WriteContext) -> None:
    versions = definition["spec"].get("versions") or ()
    stored = [version["name"] for version in versions if version.get("storage")][:1]
    definition["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def _next_definition(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    """A version that becomes the one for storage counts as stored in from now on."""
    status = new.setdefault("status", {})
    for version in new["spec"].get("versions") or ():
        if version.get("storage") and version["name"] not in status.setdefault("storedVersions", []):
            status["storedVersions"] = [*status["storedVersions"], version["name"]]


CUSTOM_RESOURCE_DEFINITION: Final = KindRecord(
    built_in_kind(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition customresourcedefinitions",
        STATUS,
        short="crd crds",
        categories="api-extensions",
        cluster=True,
        defaults=Defaults(
            {
                "apiextensions.v1.CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
                "apiextensions.v1.ServiceReference": {"port": 443},
            },
            {
                "apiextensions.v1.CustomResourceDefinition": _definition_defaults,
                "apiextensions.v1.CustomResourceDefinitionNames": _names_defaults,
            },
        ),
    ),
    KindRules(
        prepare_for_create=_new_definition,
        prepare_for_update=_next_definition,
        validate=partial(checked, definition_causes),
        validate_update=partial(checked, definition_update_causes),
        validate_status=partial(checked, definition_update_causes),
        generation="spec",
        metadata_with_status="none",
        update_needs_version=True,
    ),
    KindTable(_COLUMNS, _cells),
)


@lru_cache(maxsize=256)
def rules_of_custom(kind: CustomKind) -> KindRules:
    """The rules of a custom kind are its schema's."""
    return KindRules(
        validate=partial(checked, kind.schema.validate),
        validate_update=partial(checked, kind.schema.validate_update),
        validate_status=partial(checked, kind.schema.validate_status),
        generation="whole object",
        metadata_with_status="none",
        update_needs_version=True,
    )
