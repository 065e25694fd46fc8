"""Makes kinds of the versions of a CustomResourceDefinition, each with its schema.

A custom kind carries its version's definition, so that a caller that has the kind has the schema too; several clusters
may live in one process, each with its own idea of a group. Versions share one collection in the store and are one
object in different clothes (conversion None).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import msgspec

from podium_cluster.apiserver.errors import Cause, invalid_value
from podium_cluster.apiserver.kind import SCALE, STATUS, Kind
from podium_cluster.apiserver.schema.correlation import Correlated
from podium_cluster.apiserver.schema.custom_fields import drop_nulls, fill_in, may_repeat_fields, prune, repeated_fields
from podium_cluster.apiserver.schema.custom_values import problems_of, repeated_entries
from podium_cluster.apiserver.schema.decoding import NotPlain, struct_walk
from podium_cluster.apiserver.schema.fields import FieldType, struct_named
from podium_cluster.apiserver.schema.strict_check import MAX_PROBLEMS, StrictDecoder
from podium_cluster.apiserver.schema.validation_rules import RuleTree, rule_tree

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_BLOCKING: Final = {f"FieldValue{word}" for word in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")}


_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class CustomKind(Kind, frozen=True):
    """A kind that a definition brought; `definition` is the JSON of its version there."""

    definition: bytes = b"{}"

    @cached_property
    def schema(self) -> CustomSchema:
        return CustomSchema(self.version_definition)

    @cached_property
    def version_definition(self) -> dict[str, Any]:
        return msgspec.json.decode(self.definition, type=dict[str, Any])

    @property
    def printer_columns(self) -> list[dict[str, Any]]:
        """additionalPrinterColumns, as written."""
        columns: list[dict[str, Any]] = self.version_definition.get("additionalPrinterColumns", [])
        return columns

    @property
    def scale_paths(self) -> dict[str, str] | None:
        """specReplicasPath, statusReplicasPath and labelSelectorPath, where the kind can be scaled."""
        found: dict[str, str] | None = self.version_definition.get("subresources", {}).get("scale")
        return found


class CustomSchema:
    """The schema of one version of a custom kind."""

    def __init__(self, version: dict[str, Any]) -> None:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self.openapi: dict[str, Any] = schema
        self._scale: dict[str, str] = (version.get("subresources") or {}).get("scale") or {}
        meta = struct_named(_OBJECT_META)
        assert meta is not None
        self._meta = meta
        self._tree: tuple[RuleTree | None] | None = None
        self.root = FieldType(_with_object_fields(_for_fields(schema)))

    def take(self, obj: dict[str, Any], raw: bytes | None = None) -> list[str]:
        """Take a decoded object for one of this kind, in place: metadata as of any kind; unknown fields and nulls are
        dropped. Returns what is worth a warning, fields given twice first; raises DecodingError for wrong metadata."""
        repeated = repeated_fields(raw) if raw is not None and may_repeat_fields(raw, obj) else []
        unknown = [f"metadata.{name}" for name in self._take_metadata(obj)]
        own = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata")}
        unknown += prune(own, self.openapi, "")
        drop_nulls(own, self.openapi)
        for name in [name for name in obj if name not in ("apiVersion", "kind", "metadata")]:
            del obj[name]
        obj.update(own)
        return [
            *(f'duplicate field "{path}"' for path in repeated),
            *(f'unknown field "{path}"' for path in sorted(unknown)),
        ][:MAX_PROBLEMS]

    def apply_defaults(self, obj: dict[str, Any]) -> None:
        fill_in(obj, self.openapi)

    def validate(self, obj: dict[str, Any]) -> list[Cause]:
        """What is wrong with an object of this kind by its schema."""
        causes = [*problems_of(obj, self.openapi, ""), *self._scale_problems(obj)]
        return self._with_rules([*causes, *repeated_entries(obj, self.openapi)], obj, None, None)

    def validate_update(self, new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
        """What an update makes wrong; what it leaves as it was may stay."""
        before = Correlated(new, old, self.openapi)
        causes = [*problems_of(new, self.openapi, "", before), *self._scale_problems(new)]
        return self._with_rules([*causes, *self._newly_repeated(new, old)], new, old, before)

    def validate_status(self, new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
        """The same for an update of the status, about which messages speak without saying so."""
        schema = (self.openapi.get("properties") or {}).get("status") or {}
        before = Correlated(new, old, self.openapi)
        found = problems_of(new.get("status", {}), schema, "", before.key("status"))
        causes = [cause._replace(field=f"status.{cause.field}") for cause in found]
        return self._with_rules([*causes, *self._newly_repeated(new, old)], new, old, before)

    def _newly_repeated(self, new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
        """Entries that repeat, unless some did before."""
        found = list(repeated_entries(new, self.openapi))
        return [] if found and any(repeated_entries(old, self.openapi)) else found

    def _with_rules(
        self, causes: list[Cause], new: dict[str, Any], old: dict[str, Any] | None, before: Correlated | None
    ) -> list[Cause]:
        """The causes and what rules have against an object, unless it is too wrong to evaluate them."""
        if self._rules is None or any(cause.reason in _BLOCKING for cause in causes):
            return causes
        return [*causes, *self._rules.causes(new, old, before)]

    @property
    def _rules(self) -> RuleTree | None:
        if self._tree is None:  # not cached_property, which has one lock for all threads
            self._tree = (rule_tree(self.openapi),)
        return self._tree[0]

    def _scale_problems(self, obj: dict[str, Any]) -> Iterator[Cause]:
        """The number of replicas must be one, where the kind can be scaled."""
        path: str = self._scale.get("specReplicasPath", "")
        value: Any = obj
        for step in path.split(".")[1:]:
            if not isinstance(value, dict):
                return  # not the type that the schema has for it
            value = value.get(step)
            if value is None:
                return
        if path and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            yield invalid_value(path, value, "should be a non-negative integer")

    def _take_metadata(self, obj: dict[str, Any]) -> list[str]:
        """Bring the metadata into its form; the names of fields that it does not have."""
        meta = obj.get("metadata")
        if meta is None:
            obj["metadata"] = {}
            return []
        try:
            struct_walk(self._meta)(meta)
        except NotPlain:
            decoder = StrictDecoder()
            obj["metadata"] = decoder.read(msgspec.json.encode(meta), self._meta, "v1.ObjectMeta")
            struct_walk(self._meta)(obj["metadata"])
            return [problem.split('"')[1] for problem in decoder.problems]
        return []


def custom_kinds(definition: dict[str, Any]) -> Iterator[CustomKind]:
    """The kinds that a CustomResourceDefinition serves, one per version."""
    spec = definition["spec"]
    names = spec["names"]
    short_names, categories = tuple(names.get("shortNames", ())), tuple(names.get("categories", ()))
    for version in spec["versions"]:
        if version.get("served"):
            subresources = version.get("subresources") or {}
            parts = [part for name, part in (("status", STATUS), ("scale", SCALE)) if name in subresources]
            yield CustomKind(
                spec["group"],
                version["name"],
                names["kind"],
                names["plural"],
                names.get("singular") or names["kind"].lower(),
                spec["scope"] == "Namespaced",
                short_names,
                categories,
                tuple(parts),
                _VERBS,
                custom=True,
                definition=msgspec.json.encode(version),
            )


def _for_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as the types of fields are read: embedded objects with their fields, what is open without limits."""
    facts = {
        key: value for key, value in schema.items() if key.startswith("x-kubernetes-") or key in ("type", "default")
    }
    if isinstance(schema.get("items"), dict):
        facts["items"] = _for_fields(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        facts["additionalProperties"] = _for_fields(schema["additionalProperties"])
    if "properties" in schema:
        facts["properties"] = {name: _for_fields(field) for name, field in schema["properties"].items()}
    if schema.get("x-kubernetes-embedded-resource"):
        facts = _with_object_fields(facts)
    if facts.get("type") == "integer":
        facts["format"] = "int64"
    return facts


def _with_object_fields(facts: dict[str, Any]) -> dict[str, Any]:
    named = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"$ref": _OBJECT_META}}
    return {**facts, "properties": {**facts.get("properties", {}), **named}}
