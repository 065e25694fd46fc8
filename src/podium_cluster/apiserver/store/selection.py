"""Selects the objects of a list or a watch: a label selector and a field selector, ready to match what is stored.

Field selectors know `=`, `==` and `!=` on the few fields a kind offers (`Fields`); a backslash keeps a comma or
an equals sign in a value from ending it.
It parses label selectors as they are written in a URL, with the API's 400 where the text is not one.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from podium.kube.selector import EVERYTHING, Selector, SelectorError, parse_selector
from podium_cluster.apiserver.errors import bad_request
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store.collection import Stored


def parse_label_selector(text: str) -> Selector:
    """The selector; StatusError 400 where the text is not one."""
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None


NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"
_TERM: Final = re.compile(r"((?:[^=!\\]|\\.)*?)(!=|==|=)(.*)", re.DOTALL)
_UNESCAPED_COMMA: Final = re.compile(r"(?<!\\),")
_WITHOUT_NAMESPACE: Final = frozenset({"nodes", "namespaces", "resourceslices.resource.k8s.io"})


class FieldTerm(NamedTuple):
    field: str
    equal: bool
    value: str
    position: int
    """Where the value stands in Stored.fields; −1 the name, −2 the namespace, −3 a field that is always empty."""


class Selection(msgspec.Struct, frozen=True):
    """What matches both selectors; `everything` asks nothing."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldTerm, ...] = ()

    @property
    def everything(self) -> bool:
        return not self.fields and self.labels.empty

    @property
    def name(self) -> str | None:
        """The one name that can match, where the selection says so."""
        for term in self.fields:
            if term.position == -1 and term.equal:
                return term.value
        return None

    def matches(self, stored: Stored) -> bool:
        for term in self.fields:
            if (_value(stored, term.position) == term.value) != term.equal:
                return False
        return self.labels.empty or self.labels.matches(stored.labels)


ALL: Final = Selection()


@lru_cache(maxsize=4096)
def selection(kind: Kind, label_selector: str = "", field_selector: str = "") -> Selection:
    """The selection that a request's parameters ask for; StatusError 400 where they cannot be understood."""
    if not label_selector and not field_selector:
        return ALL
    labels = parse_label_selector(label_selector) if label_selector else EVERYTHING
    return Selection(labels, tuple(_field_terms(kind, field_selector)))


def _field_terms(kind: Kind, text: str) -> list[FieldTerm]:
    found = []
    for part in _UNESCAPED_COMMA.split(text):
        if not part:
            continue
        matched = _TERM.fullmatch(part)
        if matched is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, operator, value = matched.groups()
        found.append(FieldTerm(field, operator != "!=", _unescaped(text, value), _index(kind, field)))
    return found


def _index(kind: Kind, field: str) -> int:
    own = kind.fields.names
    if field == NAME:
        return -1
    if field == NAMESPACE and kind.qualified not in _WITHOUT_NAMESPACE:
        return -2
    if field in own:
        return own.index(field)
    if kind.qualified == "pods" and field in ("status.podIPs", "spec.host"):
        return -3 if field == "status.podIPs" else own.index("spec.nodeName")
    raise bad_request(_unsupported(kind, field))


def _unsupported(kind: Kind, field: str) -> str:
    if kind.qualified == "jobs.batch":
        return f'field label "{field}" not supported for Job'
    if kind.qualified == "resourceslices.resource.k8s.io":
        return f"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}"
    if kind.custom:
        return f"field label not supported: {field}"
    if not kind.fields.names:
        return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {field}"


def _unescaped(text: str, value: str) -> str:
    if "\\" not in value:
        if "=" in value:
            raise bad_request(f"invalid field selector: unescaped character in value: {ord('=')}")
        return value
    return re.sub(r"\\([\\,=])", r"\1", value)


def _value(stored: Stored, index: int) -> str:
    if index >= 0:
        return stored.fields[index]
    return (stored.name, stored.namespace, "")[-index - 1]
