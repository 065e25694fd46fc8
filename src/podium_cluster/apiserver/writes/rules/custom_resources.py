"""Prepares and validates CustomResourceDefinitions and the objects of the kinds that they define."""

from functools import lru_cache, partial
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.schema.definitions import definition_causes, definition_update_causes
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules
from podium_cluster.apiserver.writes.slow_checks import checked


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


DEFINITION_RULES: Final = KindRules(
    prepare_for_create=_new_definition,
    prepare_for_update=_next_definition,
    validate=partial(checked, definition_causes),
    validate_update=partial(checked, definition_update_causes),
    validate_status=partial(checked, definition_update_causes),
    generation=True,
    update_needs_version=True,
)


@lru_cache(maxsize=256)
def rules_of_custom(kind: CustomKind) -> KindRules:
    """The rules of a custom kind are its schema's."""
    return KindRules(
        validate=partial(checked, kind.schema.validate),
        validate_update=partial(checked, kind.schema.validate_update),
        validate_status=partial(checked, kind.schema.validate_status),
        generation=True,
        update_needs_version=True,
    )
