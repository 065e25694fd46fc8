"""Shows values of device claims as messages about them do: in the form that kube-apiserver has them in memory.

That form is not the one on the wire. Fields have the names and the order of its Go structs, and none is left out: what
is absent shows as null, an empty list that was given as []. `spec: Invalid value: {"Devices":{"Requests":null,…}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Show = Callable[[Any], Any]

_NAMES: Final = {
    "cel": "CEL",
    "int": "IntValue",
    "bool": "BoolValue",
    "string": "StringValue",
    "version": "VersionValue",
    "ints": "IntValues",
    "bools": "BoolValues",
    "strings": "StringValues",
    "versions": "VersionValues",
}
"""Fields whose Go name is not the one on the wire with a capital letter."""
_METADATA: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)


def _text(value: Any) -> Any:
    return value or ""


def _number(value: Any) -> Any:
    return value or 0


def _given(value: Any) -> Any:
    return value


def _struct(**fields: Show) -> Show:
    names = {field: _NAMES.get(field, field[0].upper() + field[1:]) for field in fields}

    def show(value: Mapping[str, Any] | None) -> dict[str, Any]:
        given = value or {}
        return {names[field]: show_field(given.get(field)) for field, show_field in fields.items()}

    return show


def _pointer(show: Show) -> Show:
    return lambda value: None if value is None else show(value)


def _list(show: Show) -> Show:
    return lambda values: None if values is None else [show(value) for value in values]


def _map(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if values is None else {key: values[key] for key in sorted(values)}


_EXPRESSIONS: Final = _list(_struct(key=_text, operator=_text, values=_given))
_TERMS: Final = _list(_struct(matchExpressions=_EXPRESSIONS, matchFields=_EXPRESSIONS))
_NODE_SELECTOR: Final = _pointer(_struct(nodeSelectorTerms=_TERMS))
_TOLERATIONS: Final = _list(_struct(key=_text, operator=_text, value=_text, effect=_text, tolerationSeconds=_given))
_SELECTORS: Final = _list(_struct(cel=_pointer(_struct(expression=_text))))
_CAPACITY: Final = _pointer(_struct(requests=_map))
_OPAQUE: Final = _pointer(_struct(driver=_text, parameters=_given))
_EXACTLY: Final = _struct(
    deviceClassName=_text,
    selectors=_SELECTORS,
    allocationMode=_text,
    count=_number,
    adminAccess=_given,
    tolerations=_TOLERATIONS,
    capacity=_CAPACITY,
)
_ALTERNATIVE: Final = _struct(
    name=_text,
    deviceClassName=_text,
    selectors=_SELECTORS,
    allocationMode=_text,
    count=_number,
    tolerations=_TOLERATIONS,
    capacity=_CAPACITY,
)
_CLAIM: Final = _struct(
    devices=_struct(
        requests=_list(_struct(name=_text, exactly=_pointer(_EXACTLY), firstAvailable=_list(_ALTERNATIVE))),
        constraints=_list(_struct(requests=_given, matchAttribute=_given, distinctAttribute=_given)),
        config=_list(_struct(requests=_given, opaque=_OPAQUE)),
    )
)
_RESULT: Final = _struct(
    request=_text,
    driver=_text,
    pool=_text,
    device=_text,
    adminAccess=_given,
    tolerations=_TOLERATIONS,
    bindingConditions=_given,
    bindingFailureConditions=_given,
    shareID=_given,
    consumedCapacity=_map,
)
_ALLOCATION: Final = _struct(
    devices=_struct(results=_list(_RESULT), config=_list(_struct(source=_text, requests=_given, opaque=_OPAQUE))),
    nodeSelector=_NODE_SELECTOR,
    allocationTimestamp=_given,
)
_ATTRIBUTE: Final = _struct(
    int=_given,
    bool=_given,
    string=_given,
    version=_given,
    ints=_given,
    bools=_given,
    strings=_given,
    versions=_given,
)


def claim_spec(spec: Mapping[str, Any] | None) -> Any:
    return _CLAIM(spec)


def template_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata has its names on the wire, empty fields left out, and stands beside the spec."""
    metadata = spec.get("metadata") or {}
    shown = {field: metadata[field] for field in _METADATA if metadata.get(field)}
    shown |= {field: _map(shown[field]) for field in ("labels", "annotations") if field in shown}
    return {**shown, "Spec": _CLAIM(spec.get("spec"))}


def allocation(value: Mapping[str, Any]) -> Any:
    return _ALLOCATION(value)


def selector_terms(terms: Any) -> Any:
    return _TERMS(terms)


def attribute(value: Mapping[str, Any]) -> Any:
    return _ATTRIBUTE(value)
