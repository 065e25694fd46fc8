"""Checks the fields of an object that comes in (unknown ones, wrong types) and fills in defaults.

`fieldValidation` decides about fields that are unknown or given twice: Strict refuses the write, Warn (the default)
says so in the answer, Ignore drops them in silence. A value of the wrong type is refused in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError, bad_request, shown
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.schema import DecodingError, schema_of
from podium_cluster.apiserver.schema.custom_fields import may_repeat_fields, repeated_fields
from podium_cluster.apiserver.write_context import WriteOptions


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


def check_patched(kind: Kind, obj: JsonObject, options: WriteOptions) -> None:
    """The same for an object as a patch leaves it; a message shows what the patch has made of the object."""
    schema = schema_of(kind)
    try:
        repeated = _repeated(options.raw)
        _judge([*(f'duplicate field "{path}"' for path in repeated), *schema.take(obj)], options)
    except DecodingError as error:
        message = f"Invalid value: {shown(msgspec.json.encode(obj).decode())}: {error}"
        cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
        raise StatusError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": [cause]}) from None
    schema.apply_defaults(obj)


def _repeated(raw: bytes | None) -> list[str]:
    """The paths of fields that the text of a patch gives twice."""
    return repeated_fields(raw) if raw and may_repeat_fields(raw, msgspec.json.decode(raw)) else []


def _judge(problems: Sequence[str], options: WriteOptions) -> None:
    """Refuse, warn or ignore."""
    if not problems or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        raise DecodingError(f"strict decoding error: {', '.join(problems)}")
    options.warnings.extend(problems)
