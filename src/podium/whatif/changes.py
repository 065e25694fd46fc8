"""Defines the language of changes: what a question changes in the cluster before it is asked, in the order written.

Each change is an option (`--cordon 'worker-*'`) and an entry of a document (`{change: cordon, nodes: 'worker-*'}`),
so that a question can be kept, shared and asked again. `podium.whatif.applying` carries them out.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, get_args

import msgspec

from podium.kube.documents import FILE, DocumentError, read_documents
from podium.whatif.patterns import QuestionError


class Change(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    tag_field="change",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """One change. Those that name nodes take names with `*` and `?`, separated by commas, or `-l SELECTOR`."""


class AddNodes(Change, frozen=True, kw_only=True, tag="addNodes"):
    """New nodes: of a type of the catalog, like a node there is, or from a manifest."""

    count: int = 1
    type: str = ""
    like: str = ""
    file: str = ""
    zone: str = ""


class RemoveNodes(Change, frozen=True, kw_only=True, tag="removeNodes"):
    nodes: str


class Cordon(Change, frozen=True, kw_only=True, tag="cordon"):
    nodes: str


class Uncordon(Change, frozen=True, kw_only=True, tag="uncordon"):
    nodes: str


class Drain(Change, frozen=True, kw_only=True, tag="drain"):
    nodes: str


class AddTaint(Change, frozen=True, kw_only=True, tag="taint"):
    nodes: str
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class RemoveTaint(Change, frozen=True, kw_only=True, tag="untaint"):
    nodes: str
    key: str
    effect: str = ""


class SetLabel(Change, frozen=True, kw_only=True, tag="label"):
    nodes: str
    key: str
    value: str


class RemoveLabel(Change, frozen=True, kw_only=True, tag="unlabel"):
    nodes: str
    key: str


class SetAllocatable(Change, frozen=True, kw_only=True, tag="allocatable"):
    nodes: str
    resource: str
    amount: str | int | float


class DeletePods(Change, frozen=True, kw_only=True, tag="deletePods"):
    selector: str
    """Labels, with a namespace and a slash before them where only one counts: `shop/app=web`."""


class Scale(Change, frozen=True, kw_only=True, tag="scale"):
    workload: str
    """NAMESPACE/KIND/NAME"""
    replicas: int


class SetField(Change, frozen=True, kw_only=True, tag="set"):
    """Any field of an object: `object` is KIND/[NAMESPACE/]NAME, `path` such as `spec.max.cpu`."""

    object: str
    path: str
    value: Any


class AddObjects(Change, frozen=True, kw_only=True, tag="objects"):
    """Objects that count instead of those of their names."""

    items: list[dict[str, Any]]


ANY: Final = (
    AddNodes
    | RemoveNodes
    | Cordon
    | Uncordon
    | Drain
    | AddTaint
    | RemoveTaint
    | SetLabel
    | RemoveLabel
    | SetAllocatable
    | DeletePods
    | Scale
    | SetField
    | AddObjects
)
OPTIONS: Final = {
    "--add-nodes": "N=TYPE",
    "--remove-nodes": "PATTERN",
    "--cordon": "PATTERN",
    "--uncordon": "PATTERN",
    "--drain": "PATTERN",
    "--taint": "PATTERN:KEY=VALUE:EFFECT",
    "--untaint": "PATTERN:KEY[:EFFECT]",
    "--label": "PATTERN:KEY=VALUE",
    "--unlabel": "PATTERN:KEY",
    "--allocatable": "PATTERN:RESOURCE=AMOUNT",
    "--delete-pods": "SELECTOR",
    "--scale": "NAMESPACE/KIND/NAME=N",
    "--set": "KIND/[NAMESPACE/]NAME.PATH=VALUE",
}
"""How each option is written."""
_NUMBER: Final = re.compile(r"0*[1-9][0-9]{0,17}")
_WHOLE: Final = re.compile(r"[0-9]{1,18}")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def change_of(option: str, text: str) -> Change:
    """The change that an option stands for; raises QuestionError.

    >>> change_of("--taint", "gpu-*:nvidia.com/gpu=present:NoSchedule").key
    'nvidia.com/gpu'
    >>> change_of("--set", "elasticquotas/team-a/q.spec.max.cpu=64")
    SetField(object='elasticquotas/team-a/q', path='spec.max.cpu', value='64')
    """
    match option:
        case "--add-nodes":
            return _add_nodes(text)
        case "--remove-nodes":
            return RemoveNodes(nodes=text)
        case "--cordon":
            return Cordon(nodes=text)
        case "--uncordon":
            return Uncordon(nodes=text)
        case "--drain":
            return Drain(nodes=text)
        case "--delete-pods":
            return DeletePods(selector=text)
        case "--scale":
            workload, equals, number = text.rpartition("=")
            if not equals or workload.count("/") != 2 or not _WHOLE.fullmatch(number):
                raise _wrong(option, text, "such as shop/Deployment/web=10")
            return Scale(workload=workload, replicas=int(number))
        case "--set":
            return _set_field(text)
        case "--taint":
            return _taint(text)
    nodes, rest = _nodes_and_rest(option, text)
    key, equals, value = rest.partition("=")
    match option:
        case "--untaint":
            key, _, effect = rest.partition(":")
            return RemoveTaint(nodes=nodes, key=key, effect=effect)
        case "--label" if equals:
            return SetLabel(nodes=nodes, key=key, value=value)
        case "--unlabel":
            return RemoveLabel(nodes=nodes, key=rest)
        case "--allocatable" if equals:
            return SetAllocatable(nodes=nodes, resource=key, amount=value)
    raise _wrong(option, text)


def _add_nodes(text: str) -> AddNodes:
    number, equals, what = text.partition("=")
    if not equals or not what or not _NUMBER.fullmatch(number):
        raise _wrong("--add-nodes", text, "such as 3=m6i.xlarge, 2=like:worker-1 or 1=node.yaml")
    if what.startswith("like:"):
        return AddNodes(count=int(number), like=what.removeprefix("like:"))
    if what.endswith((".yaml", ".yml", ".json")):
        return AddNodes(count=int(number), file=what)
    return AddNodes(count=int(number), type=what)


def _taint(text: str) -> AddTaint:
    nodes, rest = _nodes_and_rest("--taint", text)
    taint, colon, effect = rest.rpartition(":")
    if not colon:
        raise _wrong("--taint", text, "such as 'gpu-*:nvidia.com/gpu=present:NoSchedule'")
    if effect not in EFFECTS:
        raise QuestionError(f'--taint {text}: "{effect}" is no effect; write {", ".join(EFFECTS)}')
    key, _, value = taint.partition("=")
    return AddTaint(nodes=nodes, key=key, value=value, effect=effect)  # type: ignore[arg-type]


def _nodes_and_rest(option: str, text: str) -> tuple[str, str]:
    nodes, colon, rest = text.partition(":")
    if not colon or not nodes or not rest:
        raise _wrong(option, text)
    return nodes, rest


def _set_field(text: str) -> SetField:
    left, equals, value = text.partition("=")
    kind, slash, rest = left.partition("/")
    name, dot, path = rest.partition(".spec.")
    root = "spec"
    if not dot:
        for root in ("status", "metadata", "value", "data"):
            name, dot, path = rest.partition(f".{root}")
            if dot:
                path = path.removeprefix(".")
                break
    if not equals or not slash or not dot or not kind:
        raise _wrong("--set", text, "such as elasticquotas/team-a/quota.spec.max.cpu=64")
    return SetField(object=f"{kind}/{name}", path=".".join(filter(None, (root, path))), value=value)


def _wrong(option: str, text: str, example: str = "") -> QuestionError:
    written = OPTIONS[option]
    return QuestionError(f"{option} {text}: write {option} {written}{', ' * bool(example)}{example}")


def read_changes(text: str, source: str) -> list[Change]:
    """The changes of a document: one, or a list of them under `changes`; raises QuestionError with file and line."""
    found: list[Change] = []
    try:
        for document in read_documents(text, source, FILE):
            value = msgspec.json.decode(document.data)
            entries: Any = value
            prefix = "$"
            if isinstance(value, dict) and "changes" in value:
                entries, prefix = value["changes"], "$.changes"
                if unknown := sorted(value.keys() - {"changes", "schema", "apiVersion", "kind"}):
                    raise QuestionError(_at(source, document, f"$.{unknown[0]}", f'unknown key "{unknown[0]}"'))
            listed = isinstance(entries, list)
            for number, entry in enumerate(entries if listed else [entries]):
                path = f"{prefix}[{number}]" if listed else prefix
                found.append(_decoded(entry, source, document, path))
    except DocumentError as error:
        raise QuestionError(str(error)) from None
    if not found:
        raise QuestionError(f"{source}: no change in it; write changes: [{{change: cordon, nodes: worker-1}}]")
    return found


def _decoded(entry: Any, source: str, document: Any, path: str) -> Change:
    if not isinstance(entry, dict) or not isinstance(entry.get("change"), str):
        known = ", ".join(str(each.__struct_config__.tag) for each in get_args(ANY))
        raise QuestionError(_at(source, document, path, f"a change needs the key change: one of {known}"))
    if entry["change"] == "config":
        raise QuestionError(_at(source, document, path, "give configurations with --config and --against"))
    try:
        change: Change = msgspec.convert(entry, ANY)
    except msgspec.ValidationError as error:
        problem, _, below = str(error).partition(" - at `")
        inner = below.removesuffix("`").removeprefix("$")
        field = problem.rpartition("unknown field `")[2].removesuffix("`") if "unknown field" in problem else ""
        where = f"{path}{inner}.{field}" if field else f"{path}{inner}"
        message = f'unknown key "{field}"' if field else problem
        raise QuestionError(_at(source, document, where, message)) from None
    return change


def _at(source: str, document: Any, path: str, problem: str) -> str:
    return f"{source}:{document.position_of(path)}: {path}: {problem}"
