"""Types for tests, read from small OpenAPI schemas written by hand: another implementation of what patches ask for.

A list is atomic unless `x-kubernetes-list-type` says set or map; a map is atomic only where `x-kubernetes-map-type`
says so. What has no type, or keeps unknown fields, is taken as it comes. An object without properties is free-form.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from podium_cluster.apiserver.writes.patches.typed_values import Form

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
SCALARS: dict[str, Form] = {"integer": "number", "number": "number", "boolean": "boolean"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"


class OpenApiType:
    """The type of one field: what its own node says, then the definition it refers to."""

    def __init__(self, node: Mapping[str, Any], definitions: Mapping[str, Any], *, open_below: bool = False) -> None:
        self._node = node
        self._definitions = definitions
        reference = node.get("$ref") or next((part["$ref"] for part in node.get("allOf", ()) if "$ref" in part), "")
        self.name = reference.rsplit("/", 1)[-1]
        self._target: Mapping[str, Any] = definitions.get(self.name, node) if self.name else node
        self._open = open_below or self._target.get(PRESERVE) is True
        self._fields: dict[str, OpenApiType | None] = {}

    @cached_property
    def form(self) -> Form:
        if self.name == QUANTITY or self._target.get("x-kubernetes-int-or-string"):
            return "scalar"
        if self.name == RAW:
            return "anything"
        kind = self._target.get("type", "")
        if kind == "string":
            return "string" if self._target.get("format", "") in ("", "byte") else "scalar"
        if kind == "object":
            if self._target.get("properties"):
                return "struct"
            return "map" if isinstance(self._target.get("additionalProperties"), Mapping) else "anything"
        if kind == "array":
            return "list"
        return SCALARS.get(kind, "scalar" if "format" in self._target else "anything")

    @cached_property
    def atomic(self) -> bool:
        if self.name == RAW:
            return True
        if self.form == "list":
            return self._list_type == "atomic"
        marked = self._node.get("x-kubernetes-map-type") or self._target.get("x-kubernetes-map-type")
        return marked == "atomic"

    @cached_property
    def _list_type(self) -> str:
        declared = self._node.get("x-kubernetes-list-type")
        if declared:
            return str(declared)
        if "merge" in self.strategies:
            return "map" if self.merge_key else "set"
        return "atomic"

    @cached_property
    def keys(self) -> tuple[str, ...]:
        if self.form != "list" or self._list_type != "map":
            return ()
        return tuple(self._node.get("x-kubernetes-list-map-keys") or (self.merge_key,))

    @cached_property
    def strategies(self) -> tuple[str, ...]:
        return tuple(filter(None, self._node.get("x-kubernetes-patch-strategy", "").split(",")))

    @property
    def merge_key(self) -> str:
        return str(self._node.get("x-kubernetes-patch-merge-key", ""))

    @property
    def default(self) -> Any:
        return self._node.get("default")

    def field(self, name: str) -> OpenApiType | None:
        if name not in self._fields:
            node = self._target.get("properties", {}).get(name)
            self._fields[name] = None if node is None else self._below(node)
        return self._fields[name]

    @cached_property
    def element(self) -> OpenApiType | None:
        if self.form == "list":
            return self._below(self._target.get("items", {}))
        extra = self._target.get("additionalProperties")
        if isinstance(extra, Mapping):
            return self._below(extra)
        return self._below({}) if extra is True or self._open else None

    def _below(self, node: Mapping[str, Any]) -> OpenApiType:
        return OpenApiType(node, self._definitions, open_below=self._open)
