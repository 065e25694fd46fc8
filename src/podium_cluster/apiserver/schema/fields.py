"""Knows the fields of the built-in kinds: types, how lists are identified and merged, what an empty value becomes.

The facts are kube-apiserver's own (`field_facts.json`, written by `python -m tools.testbed.field_facts`): from its
OpenAPI documents, and from its Go types where an answer shows more than OpenAPI says. A type is read from them when
it is first asked for, because one process rarely meets more than a few of the 450.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

import msgspec

Form = Literal["struct", "map", "list", "string", "number", "boolean", "scalar", "anything"]

_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
JSON_SCHEMA: Final = f"{_EXTENSIONS}JSONSchemaProps"
_WITHOUT_FIELDS: Final = f"{_EXTENSIONS}CustomResourceSubresourceStatus"

# Types that are not encoded as their fields: what stands for them, and the form others see.
_SPECIAL: Final[dict[str, tuple[str, Form]]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("quantity", "scalar"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("int-or-string", "scalar"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": ("time", "string"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": ("micro-time", "string"),
    f"{JSON_SCHEMA}OrBool": ("schema-or-bool", "anything"),
    f"{JSON_SCHEMA}OrArray": ("schema-or-array", "anything"),
}
_SCALARS: Final[dict[str, tuple[str, Form]]] = {
    "string": ("string", "string"),
    "boolean": ("bool", "boolean"),
    "number": ("float64", "number"),
}


class Struct:
    """A type with named fields; the same for every field of that type. `name` is what Go calls it. An `open` one, of a
    custom resource, may have other fields as well."""

    def __init__(self, type_name: str, facts: dict[str, Any]) -> None:
        self.type_name = type_name
        self.name = type_name.rpartition(".")[2]
        self.atomic = facts.get("x-kubernetes-map-type") == "atomic"
        self.open: bool = facts.get("x-kubernetes-preserve-unknown-fields", False)
        self._facts: dict[str, Any] = facts["properties"]
        self._fields: dict[str, FieldType] | None = None

    @property
    def fields(self) -> dict[str, FieldType]:
        if self._fields is None:  # only now: types may contain themselves
            self._fields = {name: FieldType(facts) for name, facts in self._facts.items()}
        return self._fields


class FieldType:
    """The type of one value, as the field that holds it declares it.

    `encoding` says how a scalar is written: string, bool, int32, int64, float64, bytes, quantity, int-or-string, time,
    micro-time. `keys` identify the entries of a list; a list with neither keys nor `atomic` is a set of scalars.
    `strategies` and `merge_key` are what strategic merge goes by.
    """

    __slots__ = (
        "always",
        "atomic",
        "default",
        "element",
        "embedded",
        "encoding",
        "enum",
        "form",
        "go_type",
        "keys",
        "merge_key",
        "null_when_absent",
        "omit_zero",
        "strategies",
        "struct",
    )

    def __init__(self, facts: dict[str, Any]) -> None:
        self.form: Form = "anything"
        self.encoding = ""
        self.struct: Struct | None = None
        self.element: FieldType | None = None
        self.default: Any = facts.get("default")
        self.enum: tuple[str, ...] = tuple(facts.get("enum", ()))
        self.embedded: str = facts.get("x-embedded", "")
        self.omit_zero: bool = facts.get("x-omit-zero", False)
        self.always: bool = facts.get("x-always", False)
        self.null_when_absent: bool = facts.get("x-null", False)
        self.keys: tuple[str, ...] = tuple(facts.get("x-kubernetes-list-map-keys", ()))
        self.strategies: tuple[str, ...] = tuple(filter(None, facts.get("x-kubernetes-patch-strategy", "").split(",")))
        self.merge_key: str = facts.get("x-kubernetes-patch-merge-key", "")
        self.atomic: bool = facts.get("x-kubernetes-map-type") == "atomic"
        self.go_type = ""
        self._take_type(facts)
        self.go_type = facts.get("x-go-type", self.go_type)
        if self.element is not None and not self.element.go_type.startswith("resource."):
            self.element.go_type = _element_go_type(self.go_type) or self.element.go_type

    def field(self, name: str) -> FieldType | None:
        """The type of a struct's field; None when it has no such field."""
        if self.struct is None:
            return None
        return self.struct.fields.get(name) or (ANYTHING if self.struct.open else None)

    @property
    def name(self) -> str:
        """The struct's name, as messages about its fields give it."""
        return self.struct.name if self.struct is not None else ""

    def _take_type(self, facts: dict[str, Any]) -> None:
        if "$ref" in facts:
            self._take_reference(facts["$ref"])
        elif "items" in facts:
            self.form = "list"
            self.element = FieldType(facts["items"])
            self.atomic = facts.get("x-kubernetes-list-type", "atomic") == "atomic"
            self.go_type = f"[]{self.element.go_type}"
        elif "additionalProperties" in facts:
            self.form = "map"
            self.element = FieldType(facts["additionalProperties"])
            self.go_type = f"map[string]{self.element.go_type}"
        elif "properties" in facts:  # a custom resource's type, which has no name
            self.form, self.struct = "struct", Struct("", facts)
            self.atomic = self.struct.atomic
        elif facts.get("x-kubernetes-int-or-string"):
            self.form, self.encoding = "scalar", "int-or-string"
        elif facts.get("format") == "byte":
            self.form, self.encoding, self.go_type = "string", "bytes", "[]uint8"
        elif facts.get("type") == "integer":
            self.form = "number"
            self.encoding = self.go_type = facts.get("format", "int64")
        elif facts.get("type") in _SCALARS:
            self.encoding, self.form = _SCALARS[facts["type"]]
            self.go_type = self.encoding

    def _take_reference(self, type_name: str) -> None:
        *_, package, name = type_name.split(".")
        self.go_type = f"{package}.{name}"
        if type_name in _SPECIAL:
            self.encoding, self.form = _SPECIAL[type_name]
            return
        self.struct = struct_named(type_name)
        if self.struct is not None:
            self.form = "struct"
            self.atomic = self.atomic or self.struct.atomic


ANYTHING: Final = FieldType({})
"""The type of a value about which nothing is declared."""


def type_facts() -> dict[str, Any]:
    """Every type by its full name ("io.k8s.api.core.v1.Pod"), shaped like OpenAPI; not to be changed."""
    types: dict[str, Any] = _read_facts()["types"]
    return types


def facts_version() -> str:
    """The version of Kubernetes whose facts these are: "v1.36.4"."""
    return str(_read_facts()["version"])


@cache
def struct_named(type_name: str) -> Struct | None:
    """The type of that full name, if it is one with fields."""
    facts = type_facts()[type_name]
    if type_name == _WITHOUT_FIELDS:
        facts = {**facts, "properties": {}}
    return Struct(type_name, facts) if "properties" in facts else None


@cache
def type_names() -> dict[tuple[str, str, str], str]:
    """(group, version, kind) -> the full name of its type."""
    return {
        (each["group"], each["version"], each["kind"]): name
        for name, facts in type_facts().items()
        for each in facts.get("x-kubernetes-group-version-kind", ())
    }


@cache
def _read_facts() -> dict[str, Any]:
    raw = files(__package__).joinpath("field_facts.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, Any])


def _element_go_type(go_type: str) -> str:
    """What one value of a list or map is called: "v1.Toleration" of "[]v1.Toleration"; "" for a type with a name."""
    if go_type.startswith("[]"):
        return go_type[2:]
    return go_type.partition("]")[2] if go_type.startswith("map[") else ""
