"""Encodes requests to extenders and decodes their replies, in kube-scheduler's wire format.

Requests have capitalised keys, and null for what is not given; the objects inside are the API's own JSON, without kind
and version, as kube-scheduler's typed objects have none. Replies are read as forgivingly as Go reads them: keys in any
case, unknown ones ignored, null for nothing, and whatever follows the first value is not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from podium.config.types import Int64
from podium.framework.extender import ChosenVictims, ExtenderError, Filtered, Victims
from podium.kube import Node, Pod
from podium.kube.bounds import UNDECODABLE

T = TypeVar("T")

RawObject = Callable[[str], bytes | None]
"""Name ("namespace/name" for pods) → the object's JSON as the API server sent it; None where it is not kept."""

_Fields = dict[str, msgspec.Raw]
_NULL = b"null"


class ObjectTexts:
    """The JSON of pods and nodes; of what is not kept as the server sent it, the fields that scheduling reads."""

    def __init__(self, raw_pod: RawObject, raw_node: RawObject) -> None:
        self._raw_pod = raw_pod
        self._raw_node = raw_node

    def node(self, node: Node) -> bytes:
        raw = self._raw_node(node.name)
        if raw is None:
            return msgspec.json.encode(node)
        return _encoded(_without_kind(raw))

    def pod(self, pod: Pod, node_name: str = "") -> bytes:
        """`node_name`: where the pod runs, if the server may not have heard of it yet."""
        raw = self._raw_pod(pod.key)
        fields = {} if raw is None else _without_kind(raw)
        metadata = _object(fields.get("metadata", _NULL))
        if _value(metadata.get("uid", _NULL), str | None) != pod.uid:
            if node_name and not pod.node_name:
                pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
            return msgspec.json.encode(pod)
        if metadata.pop("managedFields", None) is not None:
            fields["metadata"] = _raw(metadata)
        if node_name:
            spec = _object(fields.get("spec", _NULL))
            if "nodeName" not in spec:
                fields["spec"] = _raw(spec | {"nodeName": _raw(node_name)})
        return _encoded(fields)


def _without_kind(raw: bytes) -> _Fields:
    fields = _object(raw)
    fields.pop("kind", None)
    fields.pop("apiVersion", None)
    return fields


# Requests


def extender_args(pod: bytes, *, nodes: Iterable[bytes] | None = None, names: Sequence[str] | None = None) -> bytes:
    """The body of filter and prioritize: with whole nodes, or with their names."""
    listed = _NULL if nodes is None else b'{"metadata":{},"items":[' + b",".join(nodes) + b"]}"
    return b'{"Pod":%b,"Nodes":%b,"NodeNames":%b}' % (pod, listed, msgspec.json.encode(names))


def preemption_args(pod: bytes, victims: Mapping[str, Victims], text: Callable[[Pod, str], bytes] | None) -> bytes:
    """The body of preempt: with whole pods by `text`, or with their uids."""
    entries = []
    for name, each in victims.items():
        pods = (b'{"UID":%b}' % _encoded(pod.uid) if text is None else text(pod, name) for pod in each.pods)
        entries.append(b'%b:{"Pods":[%b],"NumPDBViolations":%d}' % (_encoded(name), b",".join(pods), each.violations))
    found = b"{%b}" % b",".join(entries)
    whole, meta = (_NULL, found) if text is None else (found, _NULL)
    return b'{"Pod":%b,"NodeNameToVictims":%b,"NodeNameToMetaVictims":%b}' % (pod, whole, meta)


def binding_args(pod: Pod, node_name: str) -> bytes:
    return _encoded({"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name})


# Replies


def filter_result(body: bytes, *, by_name: bool) -> Filtered:
    """`by_name`: the extender knows the nodes, so that their names are enough of an answer."""
    fields = _reply(body, "Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error")
    error = _value(fields["Error"], str | None)
    if error:
        raise ExtenderError(error)
    names = _value(fields["NodeNames"], list[str | None] | None)
    nodes = _reply(fields["Nodes"], "items")["items"]
    bare = not (by_name and names is not None)
    if bare:
        names = _node_names(nodes)
    refused = _value(fields["FailedNodes"], dict[str, str | None] | None) or {}
    unresolvable = _value(fields["FailedAndUnresolvableNodes"], dict[str, str | None] | None) or {}
    return Filtered(_no_nones(names or ()), _no_null_values(refused), _no_null_values(unresolvable), bare)


class _Metadata(msgspec.Struct):
    name: str | None = None


class _Node(msgspec.Struct):
    metadata: _Metadata | None = None


def _node_names(nodes: bytes | msgspec.Raw) -> list[str | None]:
    """The names in a list of nodes: at once where they are written as usual, else one by one."""
    usual = _value(nodes, list[_Node | None] | None) or ()
    names = [node.metadata.name for node in usual if node is not None and node.metadata is not None]
    if all(names) and len(names) == len(usual):
        return names
    return [_node_name(node) for node in _value(nodes, list[msgspec.Raw])]


def _node_name(node: msgspec.Raw) -> str:
    metadata = _reply(node, "metadata")["metadata"]
    return _value(_reply(metadata, "name")["name"], str | None) or ""


class _HostPriority(msgspec.Struct):
    host: str | None = msgspec.field(default=None, name="Host")
    score: Int64 | None = msgspec.field(default=None, name="Score")


def host_scores(body: bytes) -> list[tuple[str, int]]:
    value = first_value(body)
    usual = _value(value, list[_HostPriority | None] | None) or ()
    if all(each is not None and each.host is not None and each.score is not None for each in usual):
        return [(each.host, each.score) for each in usual]
    scores: list[tuple[str, int]] = []
    for each in _value(value, list[msgspec.Raw]):
        fields = _reply(each, "Host", "Score")
        scores.append((_value(fields["Host"], str | None) or "", _value(fields["Score"], Int64 | None) or 0))
    return scores


def chosen_victims(body: bytes) -> dict[str, ChosenVictims]:
    by_node = _reply(body, "NodeNameToMetaVictims")["NodeNameToMetaVictims"]
    chosen: dict[str, ChosenVictims] = {}
    for name, victims in (_value(by_node, dict[str, msgspec.Raw] | None) or {}).items():
        fields = _reply(victims, "Pods", "NumPDBViolations")
        pods = _value(fields["Pods"], list[msgspec.Raw] | None) or ()
        uids = [_value(_reply(pod, "UID")["UID"], str | None) or "" for pod in pods]
        chosen[name] = ChosenVictims(uids, _value(fields["NumPDBViolations"], Int64 | None) or 0)
    return chosen


def binding_result(body: bytes) -> None:
    error = _value(_reply(body, "Error")["Error"], str | None)
    if error:
        raise ExtenderError(error)


def first_value(body: bytes) -> bytes | msgspec.Raw:
    """The first JSON value of a reply; where others follow, they are left out."""
    try:
        return msgspec.json.decode(body, type=msgspec.Raw)
    except RecursionError:
        raise ExtenderError("exceeded max depth") from None
    except msgspec.DecodeError as error:
        text = body.decode(errors="replace").lstrip()
        if not text:
            raise ExtenderError("EOF") from None
        if "truncated" in str(error):
            raise ExtenderError("unexpected EOF") from None
        if text[0] not in '{["-0123456789tfn':
            raise ExtenderError(f"invalid character {text[0]!r} looking for beginning of value") from None
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            raise ExtenderError(f"the reply is not JSON: {error}") from None
        return text[:end].encode()


def _reply(value: bytes | msgspec.Raw, *names: str) -> dict[str, Any]:
    """The named fields of an object, whatever the case of its keys; null for those it has not."""
    found: dict[str, Any] = dict.fromkeys(names, _NULL)
    if isinstance(value, bytes):
        value = first_value(value)
    given = _value(value, dict[str, msgspec.Raw] | None)
    if given:
        wanted = {name.casefold(): name for name in names}
        for key, each in given.items():
            name = key if key in found else wanted.get(key.casefold())
            if name is not None:
                found[name] = each
    return found


def _value(value: bytes | msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.ValidationError as error:
        raise ExtenderError(f"the reply is not what was asked for: {error}") from None
    except UNDECODABLE as error:
        raise ExtenderError(f"the reply is not JSON: {error}") from None


def _no_nones(names: Iterable[str | None]) -> list[str]:
    return [name or "" for name in names]


def _no_null_values(reasons: Mapping[str, str | None]) -> dict[str, str]:
    return {name: reason or "" for name, reason in reasons.items()}


def _object(raw: bytes | msgspec.Raw) -> _Fields:
    return msgspec.json.decode(raw, type=dict[str, msgspec.Raw] | None) or {}


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
