"""Checks the fields of an object that comes in (unknown ones, wrong types) and fills in defaults.

`fieldValidation` decides about fields that are unknown or given twice: Strict refuses the write, Warn (the default)
says so in the answer, Ignore drops them in silence. A value of the wrong type is refused in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from podium.apiserver.errors import StatusError, bad_request, shown
from podium.apiserver.kinds import Kind
from podium.apiserver.schema import DecodingError, schema_of
from podium.apiserver.schema.builtin import may_repeat_fields
from podium.apiserver.schema.custom_fields import repeated_fields
from podium.apiserver.writes.options import WriteOptions
from podium.kube.json_object import JsonObject

_MISMATCH: Final = re.compile(r"json: cannot unmarshal (\w+) into Go struct field \S+ of type (\S+)")
_GO_WORDS: Final = {"object": "map", "array": "slice", "number": "int64"}


def check_and_default(kind: Kind, obj: JsonObject, options: WriteOptions) -> None:
    """Check a whole object as it was sent against its schema and fill in defaults, in place."""
    schema = schema_of(kind)
    taken_for = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    try:
        problems = schema.take(obj, options.raw)
        _judge(problems, options)
    except DecodingError as problem:
        raise bad_request(f"{taken_for}: {problem}") from None
    schema.apply_defaults(obj)


def check_patched(kind: Kind, obj: JsonObject, patch: str, options: WriteOptions) -> None:
    """The same for an object as a patch leaves it; a message shows `patch`, or else what it has made of the object."""
    schema = schema_of(kind)
    before = patch or (_text(obj) if options.field_validation == "Strict" else "")
    try:
        repeated = _repeated(options.raw)
        _judge([*(f'duplicate field "{path}"' for path in repeated), *schema.take(obj)], options)
    except DecodingError as error:
        problem = _converted(str(error)) if patch else str(error)
        message = f"Invalid value: {shown(before or _text(obj))}: {problem}"
        cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
        raise StatusError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": [cause]}) from None
    schema.apply_defaults(obj)


def _repeated(raw: bytes | None) -> list[str]:
    """The paths of fields that the text of a patch gives twice."""
    return repeated_fields(raw) if raw and may_repeat_fields(raw, msgspec.json.decode(raw)) else []


def _converted(problem: str) -> str:
    """The same complaint where a strategic merge makes it: of the value alone, without its place."""
    found = _MISMATCH.fullmatch(problem)
    if found is None:
        return problem
    word, wanted = found.groups()
    if wanted.startswith(("[]", "map[")):
        return f"cannot restore {'slice' if wanted.startswith('[') else 'map'} from {_GO_WORDS.get(word, word)}"
    if wanted in ("int32", "int64", "bool", "string", "float64"):
        return f"unrecognized type: {wanted}"
    return problem


def _text(obj: JsonObject) -> str:
    return msgspec.json.encode(obj).decode()


def _judge(problems: Sequence[str], options: WriteOptions) -> None:
    """Refuse, warn or ignore."""
    if not problems or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        raise DecodingError(f"strict decoding error: {', '.join(problems)}")
    options.warnings.extend(problems)
