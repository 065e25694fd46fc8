"""Decodes plain values into a struct, and finds everything that does not fit instead of only the first.

msgspec stops at the first mistake and drops unknown fields unless each struct forbids them. kube-scheduler refuses
unknown fields anywhere and treats null as "not set". So the values are first walked along the struct's types: unknown
fields are noted and dropped, nulls are dropped, and each single value is tried against its own type. What is left
then decodes in one go.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import EnumType
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from podium.config.durations import Duration, decode_hook
from podium.config.field import FieldError, FieldPath, Step
from podium.config.problems import did_you_mean

S = TypeVar("S", bound=msgspec.Struct)

_UNFIT = object()
_LISTS = (list, tuple, set, frozenset)
_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}


class Mistake(NamedTuple):
    """Something that does not fit; the path starts at the struct that was decoded."""

    path: FieldPath
    message: str
    hint: str = ""
    unknown_field: bool = False


def decode(value: dict[str, Any], kind: type[S]) -> tuple[S | None, list[Mistake]]:
    """The struct, unless what is wrong leaves none, and every mistake."""
    walk = _Walk()
    cleaned = walk.struct(value, kind, FieldPath())
    try:
        return msgspec.convert(cleaned, kind, strict=True, dec_hook=decode_hook), walk.mistakes
    except msgspec.ValidationError as error:
        # Every single value fits by now: a field that must be there is missing, or the struct itself objects.
        if all(mistake.unknown_field for mistake in walk.mistakes):
            walk.mistakes.append(_from_msgspec(error))
        return None, walk.mistakes


@dataclass
class _Walk:
    mistakes: list[Mistake] = field(default_factory=list)

    def struct(self, value: dict[str, Any], kind: type[msgspec.Struct], path: FieldPath) -> dict[str, Any]:
        fields = {each.encode_name: each.type for each in msgspec.structs.fields(kind)}
        known: dict[str, Any] = {}
        for name, item in value.items():
            at = path.child(name)
            if name == kind.__struct_config__.tag_field:
                known[name] = item
            elif name not in fields:
                unknown = f'unknown field "{at}"'
                self.mistakes.append(Mistake(at, unknown, did_you_mean(name, fields), unknown_field=True))
            elif item is not None or fields[name] is Duration:  # a null duration is an error in Go, too
                fitted = self.fit("" if item is None else item, fields[name], at)
                if fitted is not _UNFIT:
                    known[name] = fitted
        return known

    def fit(self, value: Any, kind: Any, path: FieldPath) -> Any:
        """The value without what is wrong in it, or _UNFIT when nothing of it can be kept."""
        forms = _forms(kind)
        structs = [form for form in forms if _is_struct(form)]
        if isinstance(value, dict) and len(structs) == 1:
            return self.struct(value, structs[0], path)
        for form in forms:
            origin = get_origin(form) or form
            if isinstance(value, dict) and origin is dict and get_args(form):
                return self._mapping(value, get_args(form)[1], path)
            if isinstance(value, list) and origin in _LISTS and get_args(form):
                kinds = get_args(form)
                if origin is not tuple or Ellipsis in kinds:
                    return self._list(value, [kinds[0]] * len(value), path)
                if len(value) == len(kinds):
                    return self._list(value, kinds, path)
        return self._single(value, kind, path)

    def _list(self, items: list[Any], kinds: Sequence[Any], path: FieldPath) -> Any:
        """The items that fit; of a list whose length is fixed nothing can be kept without all of them."""
        whole = [_empty(kind) if item is None else item for item, kind in zip(items, kinds, strict=True)]
        fitted = [self.fit(item, kind, path.index(i)) for i, (item, kind) in enumerate(zip(whole, kinds, strict=True))]
        return [item for item in fitted if item is not _UNFIT]

    def _mapping(self, items: dict[str, Any], kind: Any, path: FieldPath) -> dict[str, Any]:
        fitted = {key: self.fit(item, kind, path.child(key)) for key, item in items.items()}
        return {key: item for key, item in fitted.items() if item is not _UNFIT}

    def _single(self, value: Any, kind: Any, path: FieldPath) -> Any:
        try:
            msgspec.convert(value, kind, strict=True, dec_hook=decode_hook)
        except msgspec.ValidationError as error:
            message = _one_of(kind) if "Invalid enum" in str(error) else ""
            message = message or _plain_words(str(error).split(" - at `")[0])
            body = FieldError.invalid(path, value, message).body
            self.mistakes.append(Mistake(path, body, _hint(value, message)))
            return _UNFIT
        return value


def _forms(kind: Any) -> list[Any]:
    """The types a value may have, without None and without limits: `Annotated[int, …] | None` → `[int]`."""
    if get_origin(kind) is Annotated:
        return _forms(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [form for member in get_args(kind) if member is not NoneType for form in _forms(member)]
    return [kind]


def _is_struct(form: Any) -> bool:
    return isinstance(form, type) and issubclass(form, msgspec.Struct)


def _one_of(kind: Any) -> str:
    """The words of a field that takes only some."""
    words = [
        str(getattr(word, "value", word))
        for form in _forms(kind)
        for word in (get_args(form) if get_origin(form) is Literal else form if isinstance(form, EnumType) else ())
    ]
    return f"expected {'one of ' * (len(words) > 1)}{', '.join(words)}" if words else ""


def _empty(kind: Any) -> Any:
    """What Go makes of a null list item: the empty value of its type."""
    forms = _forms(kind)
    return {} if any(map(_is_struct, forms)) else "" if str in forms else None


def _plain_words(message: str) -> str:
    expected = re.match(r"Expected `(\w+)(?: \| null)?`([^,]*)", message)
    if expected is None:
        return message
    return f"expected {_WORDS.get(expected[1], expected[1])}{expected[2]}"


def _hint(value: Any, message: str) -> str:
    if "duration" in message and isinstance(value, int) and not isinstance(value, bool):
        return f'write "{value}s" for {value} seconds'
    if message.startswith("expected an integer") and isinstance(value, float) and value.is_integer():
        return f"write {int(value)}, without a fraction"
    if message.startswith(("expected an integer", "expected a number")) and isinstance(value, str):
        return "write the number without quotes" if re.fullmatch(r"-?[0-9.]+", value) else ""
    return ""


def _from_msgspec(error: msgspec.ValidationError) -> Mistake:
    message, _, where = str(error).partition(" - at `$")
    where = where.partition("[...]")[0]  # the key of a mapping, which is not named
    steps: list[Step] = [
        int(position) if position else name for position, name in re.findall(r"\[(\d+)\]|\.([^.\[`]+)", where)
    ]
    return Mistake(FieldPath(tuple(steps)), _plain_words(message))
