"""Takes a JSON text for an object the slow way, and says what is wrong in kube-apiserver's words.

Its decoder is Go's: a value of the wrong type refuses the object and is named by the Go struct that holds the field
("json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"; embedded structs appear in
that path, places in lists do not). It remembers the first and reads on, but stops where a type that decodes itself (a
quantity, a time) refuses a value, and then says only that. Fields that are unknown or given twice are only collected,
in the order of the text, for the caller to refuse, to warn about or to ignore. Because of those given twice the text
itself is read here.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kubecel.quantity import QuantityError, canonical
from podium_cluster.apiserver.schema.decoding import NotPlain, take_micro_time, take_time
from podium_cluster.apiserver.schema.fields import JSON_SCHEMA, FieldType, Struct

MAX_PROBLEMS: Final = 100
QUANTITY_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class DecodingError(Exception):
    """The object cannot be taken; the message is the decoder's, without what it was taken for. Where it is `remembered`
    the decoder reads on."""

    remembered = False


class WrongTypeError(DecodingError):
    """A value of another type than the field's. One of a type that decodes itself `ends` the reading."""

    def __init__(self, value: Any, location: _Location, go_type: str, *, ends: bool = False) -> None:
        is_integer = go_type.startswith("int") and not isinstance(value, bool | str | list)
        word = f"number {_text(value)}" if is_integer else _word(value)
        where = f"Go struct field {location.struct}.{location.go_path}"
        super().__init__(f"json: cannot unmarshal {word} into {where} of type {go_type}")
        self.remembered = not ends


class Pairs(list[tuple[str, Any]]):
    """A JSON object as written: its fields in order, those given twice as well."""


class _Fraction(float):
    """A number that is not an integer, with its text."""

    text: str

    def __new__(cls, text: str) -> _Fraction:
        number = super().__new__(cls, text)
        number.text = text
        return number


class _Location(NamedTuple):
    """Where a value is: its path with list indices, its path as Go errors give it, the struct that has the field."""

    path: str = ""
    go_path: str = ""
    struct: str = ""

    def of_field(self, name: str, struct: str, embedded: str) -> _Location:
        go_name = f"{embedded}.{name}" if embedded else name
        return _Location(
            f"{self.path}.{name}" if self.path else name,
            f"{self.go_path}.{go_name}" if self.go_path else go_name,
            struct,
        )

    def of_entry(self, key: str) -> _Location:
        return self._replace(path=f"{self.path}.{key}")

    def of_index(self, index: int) -> _Location:
        return self._replace(path=f"{self.path}[{index}]")


class StrictDecoder:
    """One reading of a text; `problems` holds the unknown and repeated fields found."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._remembered: DecodingError | None = None

    def read(self, raw: bytes, struct: Struct, go_type: str) -> dict[str, Any]:
        """The object of that type in a text that is valid JSON, without unknown fields; raises DecodingError."""
        value = as_written(raw)
        if not isinstance(value, Pairs):
            raise DecodingError(f"json: cannot unmarshal {_word(value)} into Go value of type {go_type}")
        taken = self._struct(value, struct, _Location())
        if self._remembered is not None:
            raise self._remembered
        return taken

    def _struct(self, pairs: Pairs, struct: Struct, location: _Location) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        seen: set[str] = set()
        for name, value in pairs:
            field = struct.fields.get(name)
            if field is None:
                path = f"{location.path}.{name}" if location.path else name
                self._note(f'unknown field "{path}"')
                continue
            inner = location.of_field(name, struct.name, field.embedded)
            if name in seen:
                self._note(f'duplicate field "{inner.path}"')
            seen.add(name)
            taken[name] = None if value is None else self._try(value, field, inner)
        return taken

    def _try(self, value: Any, field: FieldType, location: _Location) -> Any:
        try:
            return self._value(value, field, location)
        except DecodingError as error:
            if not error.remembered:
                raise
            self._remembered = self._remembered or error
            return None

    def _value(self, value: Any, field: FieldType, location: _Location) -> Any:
        if field.form == "struct":
            if not isinstance(value, Pairs):
                raise WrongTypeError(value, location, field.go_type)
            assert field.struct is not None
            return self._struct(value, field.struct, location)
        if field.form == "list":
            return self._list(value, field, location)
        if field.form == "map":
            return self._map(value, field, location)
        if field.encoding.startswith("schema-or-"):
            return self._schema(value, field, location)
        if field.form == "anything":
            return plain(value)
        return _SCALARS[field.encoding](value, field, location)

    def _list(self, values: Any, field: FieldType, location: _Location) -> list[Any]:
        if not isinstance(values, list) or isinstance(values, Pairs):
            raise WrongTypeError(values, location, field.go_type)
        assert field.element is not None
        taken = []
        for index, value in enumerate(values):
            inner = location.of_index(index)
            taken.append(_zero(field.element) if value is None else self._try(value, field.element, inner))
        return taken

    def _map(self, pairs: Any, field: FieldType, location: _Location) -> dict[str, Any]:
        if not isinstance(pairs, Pairs):
            raise WrongTypeError(pairs, location, field.go_type)
        assert field.element is not None
        taken: dict[str, Any] = {}
        for key, value in pairs:
            inner = location.of_entry(key)
            if key in taken:
                self._note(f'duplicate field "{inner.path}"')
            taken[key] = _zero(field.element) if value is None else self._try(value, field.element, inner)
        return taken

    def _schema(self, value: Any, field: FieldType, location: _Location) -> Any:
        """A schema inside a schema; unknown fields are dropped there without a word."""
        if field.encoding == "schema-or-bool" and isinstance(value, bool):
            return value
        if field.encoding == "schema-or-bool" and not isinstance(value, Pairs):
            raise DecodingError("boolean or JSON schema expected")
        schema = FieldType({"$ref": JSON_SCHEMA})
        if isinstance(value, list) and not isinstance(value, Pairs):
            return [StrictDecoder()._whole(each, schema, location) for each in value]
        return StrictDecoder()._whole(value, schema, location) if isinstance(value, Pairs) else None

    def _whole(self, value: Any, field: FieldType, location: _Location) -> Any:
        """A value of a type that decodes itself: the first thing wrong in it ends the reading."""
        taken = self._try(value, field, location)
        if self._remembered is not None:
            self._remembered.remembered = False
            raise self._remembered
        return taken

    def _note(self, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)


def as_written(raw: bytes) -> Any:
    """A valid JSON text with every object as Pairs."""
    return json.loads(raw, object_pairs_hook=Pairs, parse_float=_Fraction)


def plain(value: Any) -> Any:
    """The same as dictionaries; of fields given twice the last one counts."""
    if isinstance(value, Pairs):
        return {key: plain(inner) for key, inner in value}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return float(value) if isinstance(value, _Fraction) else value


def _string(value: Any, field: FieldType, location: _Location) -> str:
    if not isinstance(value, str):
        raise WrongTypeError(value, location, field.go_type)
    return value


def _bool(value: Any, field: FieldType, location: _Location) -> bool:
    if not isinstance(value, bool):
        raise WrongTypeError(value, location, field.go_type)
    return value


def _integer(value: Any, field: FieldType, location: _Location) -> int:
    limit = 1 << (63 if field.encoding == "int64" else 31)
    if isinstance(value, _Fraction) or _word(value) != "number" or not -limit <= value < limit:
        own = field.encoding == "int-or-string"
        raise WrongTypeError(value, location, "int32" if own else field.go_type, ends=own)
    return int(value)


def _int_or_string(value: Any, field: FieldType, location: _Location) -> int | str:
    return value if isinstance(value, str) else _integer(value, field, location)


def _number(value: Any, field: FieldType, location: _Location) -> float:
    if _word(value) != "number":
        raise WrongTypeError(value, location, field.go_type)
    return float(value) if isinstance(value, _Fraction) else value


def _quantity(value: Any, field: FieldType, location: _Location) -> str:
    try:
        return canonical(value if isinstance(value, str) else _text(value))
    except (QuantityError, TypeError):
        raise DecodingError(QUANTITY_FORMAT) from None


def _bytes(value: Any, field: FieldType, location: _Location) -> str:
    if not isinstance(value, str):
        raise WrongTypeError(value, location, field.go_type)
    try:
        b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
    except (Base64Error, ValueError):
        raise DecodingError("illegal base64 data") from None
    return value


def _time(value: Any, field: FieldType, location: _Location) -> str:
    if not isinstance(value, str):
        raise WrongTypeError(value, location, "string", ends=True)
    try:
        return (take_micro_time if field.encoding == "micro-time" else take_time)(value) or value
    except NotPlain:
        raise DecodingError(f'parsing time "{value}": write it as 2006-01-02T15:04:05Z') from None


_SCALARS: Final[dict[str, Callable[[Any, FieldType, _Location], Any]]] = {
    "string": _string,
    "bool": _bool,
    "int32": _integer,
    "int64": _integer,
    "float64": _number,
    "bytes": _bytes,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "time": _time,
    "micro-time": _time,
}


def _word(value: Any) -> str:
    """What Go's decoder calls a JSON value."""
    if isinstance(value, Pairs):
        return "object"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "number"


def _text(value: Any) -> str:
    return value.text if isinstance(value, _Fraction) else json.dumps(value)


def _zero(field: FieldType) -> Any:
    """What a null in a list or a map stands for."""
    zeros: dict[str, Any] = {"struct": {}, "map": {}, "list": [], "string": "", "boolean": False, "number": 0}
    return "0" if field.encoding == "quantity" else zeros.get(field.form)
