"""Writes down what fields the built-in kinds have, as the real API server and its Go types say.

The embedded API knows its kinds from one data file, `field_facts.json`. This makes that file: from the OpenAPI v3
documents of the test bed's kube-apiserver come types, formats, required fields, defaults, enums and the rules for
merging lists; from the pinned Go sources come the few facts that OpenAPI leaves out but an answer shows (`x-go-type`:
the name in a decoding error, `x-embedded`: the embedded struct a field sits in, `x-omit-zero`: a zero value vanishes,
`x-always`: it is written even when it was not given, `x-null`: it is then written as null). No descriptions are kept.

    python -m tools.testbed.field_facts        # write the file again, after a change of the pinned version
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tools.testbed.apiclient import ApiClient
from tools.testbed.build import KUBERNETES_VERSION, MINOR

FACTS_PATH = Path(__file__).parents[2] / "src/podium_cluster/apiserver/schema/field_facts.json"

GROUP_VERSIONS = (
    "api/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/apps/v1",
    "apis/authentication.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/autoscaling/v1",
    "apis/autoscaling/v2",
    "apis/batch/v1",
    "apis/coordination.k8s.io/v1",
    "apis/discovery.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/networking.k8s.io/v1",
    "apis/node.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/resource.k8s.io/v1",
    "apis/scheduling.k8s.io/v1",
    "apis/scheduling.k8s.io/v1beta1",
    "apis/storage.k8s.io/v1",
)

OF_ALL_KINDS: dict[str, Any] = {
    "feature_gates": {"GenericWorkload": True},
    "runtime_config": {"scheduling.k8s.io/v1beta1": True},
}
"""What makes a ControlPlane serve all of these: some are behind a gate."""

_REF = "#/components/schemas/"
_KEPT = (
    "type",
    "format",
    "default",
    "enum",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
)


class GoField(NamedTuple):
    """One field of a Go struct: the type as an error message names it, and how it is encoded."""

    type: str
    pointer: bool
    omit_empty: bool
    omit_zero: bool
    embedded: str  # the embedded struct it comes from, or ""


def field_facts(client: ApiClient) -> dict[str, Any]:
    """The content of the facts file, as the server answers now."""
    types: dict[str, Any] = {}
    for group_version in GROUP_VERSIONS:
        document = json.loads(client.request("GET", f"/openapi/v3/{group_version}"))
        for name, schema in document["components"]["schemas"].items():
            types[name] = _facts_of_type(schema)
    structs = go_structs()
    for name, facts in types.items():
        _add_go_facts(facts, structs.get(_struct_key(name), {}))
    return {"version": KUBERNETES_VERSION, "types": dict(sorted(types.items()))}


def write(facts: dict[str, Any], path: Path = FACTS_PATH) -> None:
    """One type on a line, so that a new version reads as a difference."""
    lines = [f"{json.dumps(name)}:{_compact(facts)}" for name, facts in facts["types"].items()]
    path.write_text(f'{{"version":{json.dumps(facts["version"])},"types":{{\n' + ",\n".join(lines) + "\n}}\n")


def go_structs() -> dict[tuple[str, str], dict[str, GoField]]:
    """(package folder, struct name) -> JSON name -> field, with embedded structs spread out."""
    plain: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for package, folder in _go_packages():
        for source in sorted(folder.glob("types*.go")):
            for struct, fields in _structs_in(source.read_text()):
                plain[package, struct] = fields
    return {key: dict(_spread(key[0], fields, plain)) for key, fields in plain.items()}


def _facts_of_type(schema: dict[str, Any]) -> dict[str, Any]:
    facts = _facts_of(schema)
    kinds = schema.get("x-kubernetes-group-version-kind", [])
    if len(kinds) == 1:  # DeleteOptions and WatchEvent belong to every group
        facts["x-kubernetes-group-version-kind"] = kinds
    return facts


def _facts_of(schema: dict[str, Any]) -> dict[str, Any]:
    facts = {key: schema[key] for key in _KEPT if key in schema}
    for reference in [schema, *schema.get("allOf", [])]:
        if "$ref" in reference:
            facts["$ref"] = reference["$ref"].removeprefix(_REF)
    if "oneOf" in schema:
        facts["oneOf"] = [_facts_of(choice) for choice in schema["oneOf"]]
    if "properties" in schema:
        facts["properties"] = {name: _facts_of(field) for name, field in sorted(schema["properties"].items())}
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            facts[inner] = _facts_of(schema[inner])
            facts[inner].pop("default", None)  # an element has no default of its own
    return facts


def _add_go_facts(facts: dict[str, Any], fields: dict[str, GoField]) -> None:
    for name, field in facts.get("properties", {}).items():
        go = fields.get(name)
        if go is None:
            continue
        if go.type != _expected_go_type(field):
            field["x-go-type"] = go.type
        if go.embedded:
            field["x-embedded"] = go.embedded
        may_be_nil = go.pointer or "items" in field or "additionalProperties" in field
        if may_be_nil and not (go.omit_empty or go.omit_zero or name in facts.get("required", ())):
            field["x-null"] = True
        if go.pointer:
            continue
        if go.omit_zero or (go.omit_empty and "$ref" not in field):
            field["x-omit-zero"] = True
        elif "items" not in field and "additionalProperties" not in field:
            field["x-always"] = True


def _expected_go_type(field: dict[str, Any]) -> str:
    """The Go type that follows from the OpenAPI facts alone; only others are written down."""
    if "$ref" in field:
        return str(field["$ref"].split(".")[-2] + "." + field["$ref"].split(".")[-1])
    if "items" in field:
        return "[]" + _expected_go_type(field["items"])
    if "additionalProperties" in field:
        return "map[string]" + _expected_go_type(field["additionalProperties"])
    plain = {"string": "string", "boolean": "bool", "number": "float64", "object": "object"}
    return "[]uint8" if field.get("format") == "byte" else plain.get(field.get("type", ""), field.get("format", ""))


def _struct_key(type_name: str) -> tuple[str, str]:
    """("core/v1", "Pod") of "io.k8s.api.core.v1.Pod"."""
    *_, group, version, struct = type_name.split(".")
    return f"{group}/{version}", struct


def _go_packages() -> Iterator[tuple[str, Path]]:
    go_module = Path(__file__).parent / f"kubernetes-{MINOR}"
    for module, pattern in (
        ("k8s.io/api", "*/v1"),
        ("k8s.io/api", "autoscaling/v2"),
        ("k8s.io/api", "scheduling/v1beta1"),
        ("k8s.io/apimachinery", "pkg/apis/meta/v1"),
        ("k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1"),
    ):
        command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
        folder = Path(subprocess.run(command, cwd=go_module, check=True, capture_output=True, text=True).stdout.strip())
        for found in sorted(folder.glob(pattern)):
            yield "/".join(found.parts[-2:]), found


_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\t(?:(\w+)[ \t]+)?([\w.*\[\]]+)[ \t]+`[^`\n]*json:"([^"]*)"', re.MULTILINE)


def _structs_in(source: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    for struct in _STRUCT.finditer(source):
        yield struct[1], [(name or "", go, tag) for name, go, tag in _FIELD.findall(struct[2])]


def _spread(
    package: str, fields: list[tuple[str, str, str]], plain: dict[tuple[str, str], list[tuple[str, str, str]]]
) -> Iterator[tuple[str, GoField]]:
    for go_name, go, tag in fields:
        name, *options = tag.split(",")
        if name:
            pointer = go.startswith("*")
            yield name, GoField(_printed(go, package), pointer, "omitempty" in options, "omitzero" in options, "")
        elif "inline" in options or not go_name:  # an embedded struct
            home = {"metav1": "meta/v1", "v1": "core/v1"}.get(go.rpartition(".")[0], package)
            struct = go.rpartition(".")[2]
            if struct != "TypeMeta":
                for inner, field in _spread(home, plain.get((home, struct), []), plain):
                    yield inner, field._replace(embedded=".".join(filter(None, (struct, field.embedded))))


def _printed(go: str, package: str) -> str:
    """A Go type as encoding/json names it: no pointer in front, each name with its package's last word."""
    go = go.removeprefix("*").replace("[]byte", "[]uint8")
    names: dict[str | None, str] = {**_PACKAGES, None: package.rpartition("/")[2]}
    return re.sub(r"(?:\b(\w+)\.)?\b([A-Z]\w*)", lambda found: f"{names.get(found[1], found[1])}.{found[2]}", go)


_PACKAGES: dict[str | None, str] = {"metav1": "v1", "corev1": "v1", "apiv1": "v1"}


def _compact(facts: object) -> str:
    return json.dumps(facts, separators=(",", ":"))


def main() -> None:
    from tools.testbed.cluster import ControlPlane

    with ControlPlane(**OF_ALL_KINDS) as plane:
        facts = field_facts(plane.client)
    write(facts)
    print(f"wrote {FACTS_PATH}: {len(facts['types'])} types, {FACTS_PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
