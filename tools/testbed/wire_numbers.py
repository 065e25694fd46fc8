"""Writes down how the built-in kinds are numbered in protobuf, as the pinned Kubernetes sources declare it.

Typed Go clients, kubectl among them, send what they create in protobuf and cannot be set otherwise. To read it the
embedded API needs the number and the type of each field, no more: one data file, `wire_numbers.json`. A field without a
name holds an embedded struct, whose fields JSON spreads out.

    python -m tools.testbed.wire_numbers       # write the file again, after a change of the pinned version
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from podium_cluster.apiserver.kinds import BUILT_IN, WORKLOAD_KINDS
from podium_cluster.apiserver.schema.fields import type_facts, type_names
from tools.testbed.build import KUBERNETES_VERSION, MINOR

NUMBERS_PATH = Path(__file__).parents[2] / "src/podium_cluster/apiserver/schema/wire_numbers.json"

_ALSO = (
    "k8s.io.api.policy.v1.Eviction",
    "k8s.io.api.autoscaling.v1.Scale",
    "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions",
)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (optional|repeated|map<string, ([\w.]+)>) ?([\w.]*?) (\w+) = (\d+);", re.MULTILINE)
_PLAIN = {"string": "string", "bool": "bool", "int32": "int", "int64": "int", "bytes": "bytes", "double": "double"}

Message = dict[str, tuple[str, str]]


def wire_numbers() -> dict[str, Message]:
    """Message -> field number -> (JSON name, type), of everything the built-in kinds are made of."""
    declared = dict(_declared())
    found: dict[str, Message] = {}
    names = type_names()
    kinds = ((kind.group, kind.version, kind.kind) for kind in (*BUILT_IN, *WORKLOAD_KINDS))
    waiting = [*_ALSO, *("k8s.io." + names[kind].removeprefix("io.k8s.") for kind in kinds if kind in names)]
    while waiting:
        name = waiting.pop()
        if name in found or name not in declared:
            continue
        found[name] = _with_embedded(name, declared[name])
        waiting += [type_.lstrip("[]{}") for _, type_ in found[name].values()]
    return dict(sorted(found.items()))


def _with_embedded(name: str, fields: Message) -> Message:
    known = type_facts().get("io.k8s." + name.removeprefix("k8s.io."), {}).get("properties")
    if known is None:
        return fields
    return {
        number: (field if field in known else "", type_) if "." in type_ and type_[0] not in "[{" else (field, type_)
        for number, (field, type_) in fields.items()
    }


def _declared() -> Iterator[tuple[str, Message]]:
    for source in _sources():
        text = re.sub(r"//.*", "", source.read_text())
        package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
        assert package is not None
        for message in _MESSAGE.finditer(text):
            fields = {}
            for label, value, type_, name, number in _FIELD.findall(message[2]):
                prefix = {"optional": "", "repeated": "[]"}.get(label, "{}")
                fields[number] = (name, prefix + _full(value or type_, package[1]))
            yield f"{package[1]}.{message[1]}", fields


def _full(type_: str, package: str) -> str:
    if type_ in _PLAIN:
        return _PLAIN[type_]
    return type_[1:] if type_.startswith(".") else f"{package}.{type_}"


def _sources() -> Iterator[Path]:
    go_module = Path(__file__).parent / f"kubernetes-{MINOR}"
    for module, pattern in (
        ("k8s.io/api", "*/v1/generated.proto"),
        ("k8s.io/api", "autoscaling/v2/generated.proto"),
        ("k8s.io/api", "scheduling/v1beta1/generated.proto"),
        ("k8s.io/apimachinery", "pkg/**/generated.proto"),
        ("k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1/generated.proto"),
    ):
        command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
        folder = Path(subprocess.run(command, cwd=go_module, check=True, capture_output=True, text=True).stdout.strip())
        yield from sorted(folder.glob(pattern))


def write(numbers: dict[str, Message], path: Path = NUMBERS_PATH) -> None:
    """One message on a line, so that a new version reads as a difference."""
    lines = [f"{json.dumps(name)}:{json.dumps(fields, separators=(',', ':'))}" for name, fields in numbers.items()]
    path.write_text(f'{{"version":{json.dumps(KUBERNETES_VERSION)},"messages":{{\n' + ",\n".join(lines) + "\n}}\n")


def main() -> None:
    numbers = wire_numbers()
    write(numbers)
    print(f"wrote {NUMBERS_PATH}: {len(numbers)} messages, {NUMBERS_PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
