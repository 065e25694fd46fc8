"""A custom kind with a field of every sort, objects of it, and definitions with one mistake each."""

from typing import Any

Object = dict[str, Any]


def struct(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


PAIR = struct(k={"type": "string"}, v={"type": "integer", "default": 7}) | {"required": ["k"]}
EITHER = struct(x={"type": "string"}, y={"type": "string"})
SPEC = struct(
    size={"type": "integer", "minimum": 1, "maximum": 10},
    name={"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    color={"type": "string", "enum": ["red", "green"]},
    color2={"type": "string", "default": "red"},
    list={"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    set={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    map={"type": "array", "items": PAIR, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    any={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    partly=struct(a=struct(b={"type": "integer"})) | {"x-kubernetes-preserve-unknown-fields": True},
    ios={"x-kubernetes-int-or-string": True},
    nul={"type": "string", "nullable": True},
    emb={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    dict={"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2},
    float={"type": "number", "exclusiveMinimum": True, "minimum": 0, "multipleOf": 0.5},
    less={"type": "number", "exclusiveMaximum": True, "maximum": 5},
    bool={"type": "boolean"},
    i32={"type": "integer", "format": "int32"},
    date={"type": "string", "format": "date-time"},
    ip={"type": "string", "format": "ipv4"},
    sub=struct(a={"type": "integer", "default": 1}, b=struct(c={"type": "string", "default": "x"})) | {"default": {}},
    one=EITHER | {"oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
    anyof=EITHER | {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
    allof={"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 3}]},
    not_={"type": "string", "not": {"enum": ["bad"]}},
    nolist={"type": "array", "items": struct(q={"type": "integer"})},
) | {"required": ["size"]}
SCHEMA = struct(spec=SPEC, status=struct(replicas={"type": "integer"}, phase={"type": "string"})) | {
    "required": ["spec"]
}


def definition(schema: Object = SCHEMA, **version: Any) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"], "categories": ["all"]},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }


THING = '{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"a"{}}},"spec":{{{}}}{}}}'
SPECS = """
"size":3|"size":"x"|"size":0|"size":11|"size":1.5|"size":[]|"size":{}|"size":true|"size":null
"size":3,"name":"A"|"size":3,"name":"aaaaaa"|"size":3,"name":5|"size":3,"name":"AAA"|"size":3,"color":"blue"
"size":3,"color":5|"size":3,"list":[]|"size":3,"list":["a","b","c","d"]|"size":3,"list":"x"|"size":3,"list":[1]
"size":3,"set":["a","a"]|"size":3,"map":[{"k":"a"},{"k":"a"}]|"size":3,"map":[{"v":1}]|"size":3,"map":[{"k":"b"}]
"size":3,"any":{"x":{"y":1}}|"size":3,"ios":"5"|"size":3,"ios":5|"size":3,"ios":true|"size":3,"ios":1.5
"size":3,"nul":null,"color":null,"color2":null|"size":3,"nul":5|"size":3,"emb":{"a":1}|"size":3,"dict":{}
"size":3,"emb":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","foo":1},"z":1}|"size":3,"dict":{"a":"x"}
"size":3,"dict":{"a":1,"b":2,"c":3}|"size":3,"float":0.7|"size":3,"float":"x"|"size":3,"bool":"x"|"size":3,"date":"x"
"size":3,"date":"2020-01-01T00:00:00Z"|"size":3,"ip":"x"|"size":3,"ip":"10.0.0.1"|"size":3,"sub":{"b":{},"zz":1}
"size":3,"sub":null|"size":3,"one":{}|"size":3,"one":{"x":"1","y":"2"}|"size":3,"anyof":{}|"size":3,"not_":"bad"
"size":3,"nolist":[{"q":"x","r":1}]|"size":3,"foo":1|"size":3,"list":null|"size":3,"map":null|"size":3,"dict":null
"size":3,"dict":{"a":null}|"size":3,"list":[null]|"size":3,"sub":{"a":null}|"size":3,"any":null|"size":3,"sub":[]
"size":3,"sub":"x"|"size":3,"foo":1,"foo":2,"sub":{"zz":1},"nolist":[{"r":1}],"color2":"a","color2":"b"
"size":3,"partly":{"a":{"b":1,"c":2},"d":{"e":1}}|"size":3,"partly":{"a":{"b":"x"}}|"size":3,"less":5|"size":3,"less":4.5
"size":3,"allof":"a"|"size":3,"allof":"abcd"|"size":3,"less":"x"|"size":3,"i32":99999999999
"""
METADATA = ',"labels":{"a":5}|,"labels":[]|,"creationTimestamp":"x"|,"mm":1|,"labels":{},"finalizers":null'
REST = ',"top":1|,"status":{"phase":"x","more":1}|,"status":5|,"spec":5|,"metadata":5'


def things() -> list[bytes]:
    texts = [THING.format("", spec, "") for spec in SPECS.strip().replace("\n", "|").split("|")]
    texts += [THING.format(metadata, '"size":3', "") for metadata in METADATA.split("|")]
    texts += [THING.format("", '"size":3', rest) for rest in REST.split("|")]
    return [text.encode() for text in texts]


S = "spec.versions[0]"
# Changes of the definition above: path, value (None takes the field out), and the field that is refused first.
WRONG_DEFINITIONS: list[tuple[str, Any, str]] = [
    ("metadata.name", "x", "metadata.name"),
    ("spec.versions", [], "spec.versions"),
    ("spec.versions.0.storage", False, "spec.versions"),
    ("spec.versions.0.served", False, ""),
    ("spec.versions.0.schema", None, f"{S}.schema.openAPIV3Schema"),
    ("spec.versions.0.name", "V1", f"{S}.name"),
    ("spec.scope", "Foo", "spec.scope"),
    ("spec.scope", None, "spec.scope"),
    ("spec.names.plural", None, "metadata.name"),
    ("spec.names.kind", None, "spec.names.singular"),
    ("spec.names.kind", "foo bar", "spec.names.singular"),
    ("spec.group", None, "metadata.name"),
    ("spec.conversion", {"strategy": "Webhook"}, "spec.conversion.strategy"),
    (
        "spec.versions.0.subresources",
        {"scale": {"specReplicasPath": "x", "statusReplicasPath": ".status.y"}},
        f"{S}.subresources.scale.specReplicasPath",
    ),
    (
        "spec.versions.0.subresources",
        {"scale": {"specReplicasPath": ".spec.x", "statusReplicasPath": ".spec.y"}},
        f"{S}.subresources.scale.statusReplicasPath",
    ),
    ("spec.names.shortNames", ["A"], ""),
    ("spec.versions.0.additionalPrinterColumns", [{"name": "", "type": "foo", "jsonPath": "x"}], ""),
]
# Schemas of objects, and whether their type is refused.
ROOTS: list[tuple[Object, bool]] = [
    ({"type": "string"}, True),
    ({"properties": {"spec": {"type": "object"}}}, True),
    ({}, True),
    (struct(metadata=struct(name={"type": "string", "pattern": "a"})), False),
]
MAP = {"type": "array", "x-kubernetes-list-type": "map"}
# Schemas of one field, and what is refused first below it.
FIELDS: list[tuple[Object, str]] = [
    ({"properties": {"a": {"type": "string"}}}, ".type"),
    (struct(a={"description": "x"}), ".properties[a].type"),
    ({"type": "foo"}, ".type"),
    ({"type": "array"}, ".items"),
    ({"type": "array", "items": {}}, ".items.type"),
    ({"type": "array", "items": [{"type": "string"}]}, ".items"),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ".uniqueItems"),
    ({"$ref": "#/x"}, ".$ref"),
    (struct(a={"type": "string"}) | {"additionalProperties": {"type": "string"}}, ".additionalProperties"),
    ({"type": "integer", "default": "x"}, ".default"),
    (struct(a={"type": "integer"}) | {"default": {"b": 1}}, ".default"),
    (MAP | {"items": {"type": "object"}}, ".x-kubernetes-list-map-keys"),
    (MAP | {"items": struct(b={"type": "string"}), "x-kubernetes-list-map-keys": ["a"]}, ".x-kubernetes-list-map-keys"),
    (
        MAP | {"items": struct(a={"type": "string"}), "x-kubernetes-list-map-keys": ["a"]},
        ".items.properties[a].default",
    ),
    ({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "foo"}, ".x-kubernetes-list-type"),
    ({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}, ".items.type"),
    ({"type": "object", "dependencies": {"a": ["b"]}}, ".dependencies"),
    ({"type": "string", "pattern": "(a"}, ".pattern"),
    ({"type": "string", "anyOf": [{"pattern": "(a"}]}, ".anyOf[0].pattern"),
    ({"type": "string", "default": None}, ""),
    ({"type": "object", "x-kubernetes-embedded-resource": True}, ""),
    ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, ""),
]
