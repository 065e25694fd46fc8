"""Parses requests of kube-scheduler: the pod, and the nodes by name or in full.

Keys are read in any case, as Go reads them: kube-scheduler writes the capitalised names of Go's fields, others the
lower-case ones of JSON tags. A request of kube-scheduler's own making is cut at two places that never vary, and the
parts are looked up among those seen before: of thousands of requests a second, few bring a pod or a list of names that
the one before did not. A part that is new must be a whole JSON value; else the whole request is parsed, the plain way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from podium.cluster.facts import FactsCache
from podium.kube import DecodeError, Pod, decode_json
from podium.kube.bounds import UNDECODABLE
from podium.kube.check import problems

T = TypeVar("T")
Text = bytes | memoryview | msgspec.Raw

_POD = b'{"Pod":'
_NAMES = b',"Nodes":null,"NodeNames":['
_NODES = b',"Nodes":{"metadata":{},"items":['
_NODES_END = b']},"NodeNames":null}'
_NULL = b"null"
_BINDING_KEYS = dict.fromkeys(("podname", "podnamespace", "poduid", "node")).keys()

MOST_PODS = 512
LONGEST_CACHED = 64 << 10
"""A pod's text that is longer is decoded each time."""


class BadRequestError(Exception):
    """A request that cannot be answered: one sentence says what is wrong with it."""


class ExtenderArgs(NamedTuple):
    """The body of filter and prioritize; of `names` and `nodes` (a list of objects) one may be missing."""

    pod: bytes
    names: bytes | None
    nodes: memoryview | None


class TextCache(dict[bytes, T], Generic[T]):
    """Values by the text they were read from; the oldest are forgotten."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def add(self, text: bytes, value: T) -> T:
        if len(self) >= self._most:
            del self[next(iter(self))]
        self[text] = value
        return value


class PodReader:
    """Pods by their JSON. Quantities and selectors are checked once for each signature: they are part of it."""

    def __init__(self, facts: FactsCache) -> None:
        self._facts = facts
        self._known: TextCache[Pod] = TextCache(MOST_PODS)
        self._sound: TextCache[bool] = TextCache(MOST_PODS)
        """Signatures of pods in which nothing was found wrong."""

    def read(self, text: bytes) -> Pod:
        pod = self._known.get(text)
        if pod is None:
            pod = decode_pod(text)
            self._check(pod)
            if len(text) <= LONGEST_CACHED:
                self._known.add(text, pod)
        return pod

    def _check(self, pod: Pod) -> None:
        try:
            signature = self._facts.of(pod).signature
        except Exception:  # whatever an unsound pod breaks: its fields say it better, where they can
            check(pod, "Pod")
            raise
        if signature not in self._sound or pod.status.container_statuses or pod.status.resources:
            check(pod, "Pod")
            self._sound.add(signature, True)


def read_pod(text: Text, what: str = "Pod") -> Pod:
    pod = decode_pod(text, what)
    check(pod, what)
    return pod


def decode_pod(text: Text, what: str = "Pod") -> Pod:
    if bytes(text[:5] if isinstance(text, bytes) else text).strip() == _NULL:
        raise BadRequestError(f"{what} is missing")
    return decode_object(Pod, text, what)


def read_object(kind: type[T], text: Text, what: str) -> T:
    """An object of the API, with quantities and selectors that can be used."""
    found = decode_object(kind, text, what)
    check(found, what)
    return found


def decode_object(kind: type[T], text: Text, what: str) -> T:
    try:
        return decode_json(kind, text)  # type: ignore[arg-type]
    except DecodeError as error:
        raise BadRequestError(f"{what}: {str(error).removeprefix('$.')}") from None
    except (RecursionError, UnicodeDecodeError) as error:
        raise BadRequestError(f"{what}: the JSON is broken: {error}") from None


def check(found: Any, what: str) -> None:
    """Raise for the first quantity or selector that cannot be used."""
    for problem in problems(found):
        raise BadRequestError(f"{what}: {problem.path.removeprefix('$.')}: {problem.message}")


def read_args(body: bytes) -> ExtenderArgs:
    """The parts of the body of filter or prioritize."""
    if body.startswith(_POD):
        at = body.find(_NAMES, 0, LONGEST_CACHED)
        if at > 0 and body.endswith(b"]}"):
            return ExtenderArgs(body[len(_POD) : at], body[at + len(_NAMES) - 1 : -1], None)
        at = body.find(_NODES, 0, LONGEST_CACHED)
        if at > 0 and body.endswith(_NODES_END):
            start, end = at + len(_NODES) - 1, len(body) - len(_NODES_END) + 1
            return ExtenderArgs(body[len(_POD) : at], None, memoryview(body)[start:end])
    return read_args_of_any_shape(body)


def read_args_of_any_shape(body: bytes) -> ExtenderArgs:
    """The same of a body in any shape."""
    fields = read_fields(body, "Pod", "Nodes", "NodeNames")
    nodes = _items(fields["Nodes"])
    names = bytes(fields["NodeNames"])
    return ExtenderArgs(bytes(fields["Pod"]), None if names == _NULL else names, nodes)


def _items(nodes: Text) -> memoryview | None:
    if bytes(nodes) == _NULL:
        return None
    items = read_fields(nodes, "items", what="Nodes")["items"]
    return memoryview(b"[]") if bytes(items) == _NULL else memoryview(items)


def read_binding_args(body: bytes) -> tuple[str, str, str, str]:
    """PodName, PodNamespace, PodUID and Node of the body of bind: all of them, and nothing else.

    kube-scheduler always sends all four. A binding cannot be undone, so nothing less exact will do.
    """
    given: dict[str, msgspec.Raw] = read_value(body, dict[str, msgspec.Raw], "the request")
    found = {key.casefold(): read_value(text, str | None, key[:80]) for key, text in given.items()}
    if found.keys() != _BINDING_KEYS or not all(found.values()):
        raise BadRequestError("PodName, PodNamespace, PodUID and Node must be given, and nothing else")
    name, namespace, uid, node = (found[key] for key in _BINDING_KEYS)
    return name, namespace, uid, node


def read_fields(text: Text, *names: str, what: str = "the request") -> Mapping[str, Text]:
    """The named fields of an object, whatever the case of its keys; null for those it has not."""
    given: dict[str, msgspec.Raw] | None = read_value(text, dict[str, msgspec.Raw] | None, what)
    found: dict[str, Text] = dict.fromkeys(names, _NULL)
    wanted = {name.casefold(): name for name in names}
    for key, value in (given or {}).items():
        name = wanted.get(key.casefold())
        if name is not None:
            found[name] = value
    return found


def read_value(text: Text, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"{what} is not what it should be: {_plain(error)}") from None
    except UNDECODABLE as error:
        if not bytes(text[:1] if isinstance(text, bytes) else text).strip():
            raise BadRequestError(f"{what} is empty: write a JSON object") from None
        raise BadRequestError(f"{what} is not JSON: {_plain(error)}") from None


def _plain(error: Exception) -> str:
    return str(error).removeprefix("JSON is malformed: ").replace("`", "")
