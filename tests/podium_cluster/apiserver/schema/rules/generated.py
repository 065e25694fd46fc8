"""Makes random cases for rules: a schema, rules in it, objects to create, and updates of objects that were there
before the rules."""

import copy
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kubecel.schema_types import escaped
from podium_cluster.apiserver.schema.validation_rules import rule_problems
from tests.kubecel.generated import Grower

Schema = dict[str, Any]

NAMES = ("size", "name", "mode", "tags", "parts", "limits", "namespace", "a-b", "x.y/z", "in", "with__under", "1st")
STRINGS = ("a", "b", "a100", "", "abc", "10Gi", "1.2.3", "10.0.0.1", "é", "x y", "drv.example.com", "true", "7")
INTS = (0, 1, 2, 3, -7, 100, 9223372036854775807)
FORMATS = {
    "date-time": ("2026-01-01T00:00:00Z", "2026-06-01T12:30:00.25+02:00", "1999-12-31T23:59:59Z"),
    "date": ("2026-01-01", "1999-12-31"),
    "duration": ("1h", "1.5s", "90ms", "0"),
    "byte": ("YQ==", "", "AAEC"),
}
REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
RULES = "x-kubernetes-validations"


@dataclass
class RuleCase:
    """A schema with rules, and values for it: what is there before, what is created, and updates of the former."""

    schema: Schema
    before: list[Any] = field(default_factory=list)
    created: list[Any] = field(default_factory=list)
    updated: list[tuple[int, Any]] = field(default_factory=list)

    @property
    def plain(self) -> Schema:
        """The schema without its rules."""
        schema: Schema = without_rules(self.schema)
        return schema


def without_rules(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: without_rules(value) for key, value in schema.items() if key != RULES}
    return [without_rules(each) for each in schema] if isinstance(schema, list) else schema


class RuleGrower(Grower):
    """Grows expressions over the fields of a schema."""

    def __init__(self, seed: str, fields: list[tuple[str, str]]) -> None:
        super().__init__(seed)
        self._fields = fields
        self._names = [*fields]

    def condition(self) -> str:
        text = self.grow("bool")
        if self._random.random() < 0.08:
            text = self._broken(text)
        return self._of_schema(text)

    def text(self) -> str:
        text = self.grow("string")
        if self._random.random() < 0.1:
            text = self._broken(text)
        return self._of_schema(text)

    def _of_schema(self, text: str) -> str:
        """The text with what is said of devices said of fields instead."""
        text = re.sub(r'device\.attributes\["[^"]*"\]\.\??\w+', lambda _: self._field("dyn", "dyn(1)"), text)
        text = re.sub(r'device\.capacity\["[^"]*"\]\.\w+', 'quantity("2")', text)
        text = re.sub(
            r'device\.attributes(\["[^"]*"\])?|device\.capacity', lambda _: self._field("map", "{'a': 1}"), text
        )
        text = text.replace("device.driver", self._field("string", "'s'"))
        text = text.replace("device.allowMultipleAllocations", self._field("bool", "true"))
        return text.replace("device", "self")

    def _field(self, kind: str, otherwise: str) -> str:
        found = [name for name, of in self._fields if kind in (of, "dyn")]
        return self._random.choice(found) if found else otherwise


class CaseMaker:
    """Makes one case."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._random = random.Random(seed)
        self._grown = 0

    def case(self) -> RuleCase:
        schema = self._object(3)
        places = [each for each in _places(schema) if not each.get("x-kubernetes-preserve-unknown-fields")]
        for place in self._random.sample(places, min(len(places), self._random.choice((1, 1, 2, 3)))):
            place[RULES] = []
            for _ in range(self._random.choice((1, 1, 2, 3))):
                self._add_rule(schema, place)
        if not any(place.get(RULES) for place in places):
            schema[RULES] = [self._rule(schema)]
        before = [self._value(schema) for _ in range(2)]
        created = [self._value(schema) for _ in range(3)]
        updated = [(at, self._changed(before[at], schema)) for at in (0, 0, 1)]
        return RuleCase(schema, before, created, updated)

    def _add_rule(self, schema: Schema, place: Schema) -> None:
        """Add a rule to a place: mostly one that seems to be fine, because one that is not hides what others do."""
        tries = self._random.choice((1, 15, 15, 15, 15, 15, 15))
        for left in reversed(range(tries)):
            place[RULES].append(self._rule(place))
            if not left or not any(rule_problems(schema, "")):
                return
            place[RULES].pop()

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    # Schemas

    def _schema(self, depth: int) -> Schema:
        scalars: list[Callable[[], Schema]] = [self._string, self._integer, self._integer, self._string, self._scalar]
        nested: list[Callable[[], Schema]] = [lambda: self._list(depth - 1), lambda: self._map(depth - 1)]
        nested += [lambda: self._object(depth - 1)] * 2
        schema = self._random.choice(scalars + nested if depth > 0 else scalars)()
        if self._chance(0.08) and "x-kubernetes-list-type" not in schema:
            schema["nullable"] = True
        elif self._chance(0.08) and schema.get("type") in ("integer", "string", "boolean"):
            schema["default"] = self._value(schema)
        return schema

    def _string(self) -> Schema:
        schema: Schema = {"type": "string"}
        if self._chance(0.25):
            schema["format"] = self._random.choice(tuple(FORMATS))
        elif self._chance(0.15):
            schema["enum"] = ["a", "b", "abc"]
        if self._chance(0.6):
            schema["maxLength"] = self._random.choice((5, 30, 1000))
        return schema

    def _integer(self) -> Schema:
        return {"type": "integer", **self._random.choice(({}, {}, {"format": "int32"}, {"minimum": 0}))}

    def _scalar(self) -> Schema:
        return copy.deepcopy(
            self._random.choice(
                (
                    {"type": "boolean"},
                    {"type": "number"},
                    {"x-kubernetes-int-or-string": True},
                    {"x-kubernetes-preserve-unknown-fields": True},
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                )
            )
        )

    def _list(self, depth: int) -> Schema:
        kind = self._random.choice(("atomic", "atomic", "", "set", "map"))
        schema: Schema = {"type": "array"}
        if kind == "map":
            schema["items"] = self._object(max(0, depth))
            schema["items"]["properties"]["name"] = {"type": "string", "maxLength": 10}
            keys = ["name"]
            if self._chance(0.3):
                schema["items"]["properties"]["a-b"] = {"type": "integer"}
                keys.append("a-b")
            schema["items"]["required"] = keys
            schema["items"].pop("nullable", None)
            schema["x-kubernetes-list-map-keys"] = keys
        elif kind == "set":
            schema["items"] = self._random.choice(({"type": "string"}, {"type": "integer"}, {"type": "number"}))
        else:
            schema["items"] = self._schema(depth)
        if kind:
            schema["x-kubernetes-list-type"] = kind
        if self._chance(0.7):
            schema["maxItems"] = self._random.choice((3, 10, 50))
        return schema

    def _map(self, depth: int) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self._schema(depth)}
        if self._chance(0.6):
            schema["maxProperties"] = self._random.choice((3, 20))
        return schema

    def _object(self, depth: int) -> Schema:
        names = self._random.sample(NAMES, self._random.randint(1, 4))
        schema: Schema = {"type": "object", "properties": {name: self._schema(depth - 1) for name in names}}
        if self._chance(0.4):
            schema["required"] = [name for name in names if self._chance(0.5)] or names[:1]
        if self._chance(0.1):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if self._chance(0.1) and depth < 3:
            schema["x-kubernetes-embedded-resource"] = True
        if self._chance(0.15):
            schema["x-kubernetes-map-type"] = self._random.choice(("atomic", "granular"))
        return schema

    # Rules

    def _rule(self, schema: Schema) -> Schema:
        optional = self._chance(0.1)
        rule: Schema = {"rule": self._condition(schema, optional=optional)}
        if optional:
            rule["optionalOldSelf"] = True
        if self._chance(0.3):
            rule["message"] = self._random.choice(("is wrong", " has spaces around ", "é"))
        if self._chance(0.3):
            rule["messageExpression"] = self._grower(schema, "").text()
        if self._chance(0.2):
            rule["reason"] = self._random.choice(REASONS)
        if self._chance(0.25):
            rule["fieldPath"] = self._path(schema)
        return rule

    def _path(self, schema: Schema) -> str:
        shown = ""
        while True:
            properties = schema.get("properties")
            rest = schema.get("additionalProperties")
            if properties:
                name = self._random.choice(tuple(properties))
                schema = properties[name]
            elif isinstance(rest, dict):
                name, schema = self._random.choice(("a", "k.v", "it's")), rest
            else:
                return shown or ".nowhere"
            plain = re.fullmatch(r"\w+", name) and self._chance(0.7)
            shown += f".{name}" if plain else "['" + name.replace("'", "\\'") + "']"
            if self._chance(0.5):
                return shown

    def _grower(self, schema: Schema, prefix: str, *more: tuple[str, str]) -> RuleGrower:
        self._grown += 1
        return RuleGrower(f"{self._seed}/{self._grown}", [*_fields(schema, prefix or "self", 3), *more])

    def _condition(self, schema: Schema, *, optional: bool) -> str:
        if optional:
            fields = [name for name, _ in _fields(schema, "self", 2)]
            one = self._random.choice(fields) if fields else "self"
            other = one.replace("self", "oldSelf.value()", 1)
            return self._random.choice(
                (
                    f"!oldSelf.hasValue() || {other} == {one}",
                    f"oldSelf.hasValue() || {self._grower(schema, '').condition()}",
                    "oldSelf.orValue(self) == self",
                    f"oldSelf.optMap(o, o == self).orValue({self._random.choice(('true', 'false'))})",
                    f"{other} == {one}",
                    "true",
                )
            )
        if self._chance(0.25):
            return self._transition(schema)
        if self._chance(0.45):
            found = list(self._about_parts(schema, "self"))
            if found:
                return self._random.choice(found)
        return self._grower(schema, "").condition()

    def _transition(self, schema: Schema) -> str:
        fields = [name for name, _ in _fields(schema, "self", 3)]
        one = self._random.choice(fields) if fields else "self"
        old = one.replace("self", "oldSelf", 1)
        return self._random.choice(
            (
                "self == oldSelf",
                f"{one} == {old}",
                f"{one} != {old}",
                f"!has({old}) || has({one})" if "." in one else "oldSelf == self",
                f"{self._grower(schema, 'oldSelf').condition()} || {self._grower(schema, '').condition()}",
                f"size({one}) >= size({old})",
            )
        )

    def _about_parts(self, schema: Schema, path: str, depth: int = 3) -> Iterator[str]:
        """Conditions about lists, maps and objects in their own words."""
        kind = schema.get("type")
        if kind == "array":
            items = schema["items"]
            condition = self._grower(items, "e").condition()
            yield f"{path}.{self._random.choice(('all', 'exists', 'exists_one'))}(e, {condition})"
            yield f"{path}.all(i, e, i < 5 && ({condition}))"
            yield f"size({path}) < {self._random.choice((0, 2, 5))}"
            yield f"{path} == {path}.filter(e, {condition})"
            yield f"{path} + {path} == {path}"
            yield f"{path}.all(e, {path}.exists_one(f, e == f))"
            yield f"{path}[0] == {path}[{self._random.choice((0, 1, 5))}]"
            if items.get("type") == "string" and "format" not in items:
                yield f"{path} == ['b', 'a']"
                yield f"{path} + ['z'] == {path}"
                yield f"'a' in {path}"
                yield f"{path}.join(',').size() < 10"
                yield f"sets.contains(['a', 'b'], {path})"
            if items.get("properties"):
                for name in items["properties"]:
                    if escaped(name):
                        yield f"{path}.map(e, e.{escaped(name)}).size() > 1"
                        yield f"{path}.exists(e, has(e.{escaped(name)}))"
        elif isinstance(schema.get("additionalProperties"), dict):
            condition = self._grower(schema["additionalProperties"], f"{path}[k]").condition()
            yield f"{path}.all(k, k.size() < 3 && ({condition}))"
            yield f"{path}.all(k, v, k == 'a' || v == v)"
            yield f"'a' in {path}"
            yield f"has({path}.a)" if "." in path else f"{path}[?'a'].hasValue()"
            yield f"{path}['a'] == {path}['b']"
        elif schema.get("properties"):
            if schema.get("x-kubernetes-embedded-resource"):
                yield f"{path}.metadata.name.startsWith('a') || {path}.kind == 'K'"
            for name, inner in schema["properties"].items():
                identifier = escaped(name)
                if identifier is None:
                    continue
                if self._chance(0.5) and re.fullmatch(r"\w+", name) and name != "in":
                    identifier = name
                yield f"has({path}.{identifier})"
                yield f"!has({path}.{identifier}) || {path}.{identifier} == {path}.{identifier}"
                yield f"{path}.?{identifier}.hasValue()"
                if depth:
                    yield from self._about_parts(inner, f"{path}.{identifier}", depth - 1)

    # Values

    def _value(self, schema: Schema) -> Any:
        if schema.get("nullable") and self._chance(0.3):
            return None
        if self._chance(0.015):
            return self._random.choice((5, "wrong", [], {}, True))
        if schema.get("x-kubernetes-int-or-string"):
            return self._random.choice((*INTS, *STRINGS))
        match schema.get("type"):
            case "string":
                return self._text(schema)
            case "integer":
                return self._random.choice(INTS[:6] if schema.get("format") == "int32" else INTS)
            case "number":
                return self._random.choice((0, 1, 1.5, -2.25, 1e300, 3))
            case "boolean":
                return self._chance(0.5)
            case "array":
                return self._entries(schema)
            case "object":
                return self._fields_of(schema)
        return self._random.choice((1, "a", {"b": [1, 2.5]}, [True], 1.0))

    def _text(self, schema: Schema) -> str:
        if schema.get("format") in FORMATS:
            return self._random.choice(FORMATS[schema["format"]])
        if schema.get("enum") and self._chance(0.95):
            return str(self._random.choice(schema["enum"]))
        return self._random.choice(STRINGS)

    def _entries(self, schema: Schema) -> list[Any]:
        most = min(4, schema.get("maxItems", 4))
        entries = [self._value(schema["items"]) for _ in range(self._random.randint(0, most))]
        if schema.get("x-kubernetes-list-type") in ("set", "map") and self._chance(0.95):
            keys = schema.get("x-kubernetes-list-map-keys")
            unique: dict[str, Any] = {}
            for entry in entries:
                identity = [entry.get(key) for key in keys] if keys and isinstance(entry, dict) else entry
                unique.setdefault(repr(identity).removesuffix(".0"), entry)
            entries = list(unique.values())
        return entries

    def _fields_of(self, schema: Schema) -> dict[str, Any]:
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict):
            return {
                key: self._value(rest)
                for key in self._random.sample(("a", "b", "k.v", "é"), self._random.randint(0, 3))
            }
        wanted = schema.get("required", ())
        found = {
            name: self._value(inner)
            for name, inner in (schema.get("properties") or {}).items()
            if self._chance(0.98 if name in wanted else 0.7)
        }
        if schema.get("x-kubernetes-preserve-unknown-fields") and self._chance(0.5):
            found["extra"] = self._random.choice((1, 1.0, "x", {"y": [1]}))
        if schema.get("x-kubernetes-embedded-resource"):
            found |= {"apiVersion": "v1", "kind": self._random.choice(("K", "L"))}
            if self._chance(0.8):
                found["metadata"] = {"name": self._random.choice(("a", "b"))}
        return found

    def _changed(self, value: Any, schema: Schema) -> Any:
        """The value with some parts changed, and others as they were."""
        if value is None or self._chance(0.12):
            return self._value(schema)
        if isinstance(value, dict):
            rest = schema.get("additionalProperties")
            known = schema.get("properties") or {}
            found = {}
            for name, inner in value.items():
                below = rest if isinstance(rest, dict) else known.get(name)
                if below is None or self._chance(0.5):
                    found[name] = copy.deepcopy(inner)
                elif self._chance(0.93):
                    found[name] = self._changed(inner, below)
            return found
        if isinstance(value, list) and isinstance(schema.get("items"), dict):
            found_entries = [each if self._chance(0.7) else self._changed(each, schema["items"]) for each in value]
            if self._chance(0.2):
                self._random.shuffle(found_entries)
            return copy.deepcopy(found_entries)
        return value


def _places(schema: Schema) -> Iterator[Schema]:
    yield schema
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for part in parts:
        if isinstance(part, dict):
            yield from _places(part)


def _fields(schema: Schema, path: str, depth: int) -> list[tuple[str, str]]:
    """Expressions for the parts of a value, with their types in the grower's words."""
    if schema.get("x-kubernetes-int-or-string"):
        return [(path, "dyn")]
    match schema.get("type"):
        case "integer":
            return [(path, "int")]
        case "boolean":
            return [(path, "bool")]
        case "number":
            return [(path, "double")]
        case "string":
            kinds = {"date": "timestamp", "date-time": "timestamp", "duration": "duration", "byte": "bytes"}
            return [(path, kinds.get(schema.get("format", ""), "string"))]
        case "array":
            element = _fields(schema["items"], "e", 0)
            kind = f"list({element[0][1]})" if element else "dyn"
            return [(path, kind)]
        case "object":
            found = [(path, "map" if isinstance(schema.get("additionalProperties"), dict) else "dyn")]
            for name, inner in (schema.get("properties") or {}).items():
                identifier = escaped(name)
                if identifier is not None and depth:
                    found += _fields(inner, f"{path}.{identifier}", depth - 1)
            return found
    return []


def rule_cases(seed: int, count: int) -> list[RuleCase]:
    """So many cases; the same ones for the same seed."""
    return [CaseMaker(f"{seed}/{number}").case() for number in range(count)]
