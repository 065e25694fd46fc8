"""Words refusals as the API does: every one is a `Status` object with a code, a reason and a message.

Clients read all three (client-go switches on the reason, people on the message), so the wording is kube-apiserver's,
to the letter. What is wrong inside an object is a list of causes, each about one field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from kubecel.strconv import quoted
from podium_cluster.apiserver.kind import Kind

# Go writes these as codes inside of JSON.
_JSON_ESCAPES: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


class Cause(NamedTuple):
    """What is wrong with one field: "FieldValueInvalid", 'Invalid value: "x": must be …', "spec.containers[0].name".
    `ratcheted`: it was so before and may stay; the answer only warns."""

    reason: str
    message: str
    field: str
    ratcheted: bool = False


class StatusError(Exception):
    """A refused request. An empty reason is left out, as the API does for what it did not foresee."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        self.continue_token = ""
        self.warnings: tuple[str, ...] = ()
        """What the answer also warns about."""

    def status(self) -> dict[str, Any]:
        """The Status object that answers the request."""
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        found: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        found["message"] = self.message
        if self.reason:
            found["reason"] = self.reason
        if self.details is not None or self.retry_after:
            found["details"] = dict(self.details or {})
            if self.retry_after:
                found["details"]["retryAfterSeconds"] = self.retry_after
        found["code"] = self.code
        return found


class StorageError(StatusError):
    """A write that could not be stored and has therefore not happened. It may succeed later."""

    def __init__(self, message: str) -> None:
        details = {"causes": [{"message": message}]}
        super().__init__(500, "InternalError", f"Internal error occurred: {message}", details)
        self.sentence = message


def not_found(kind: Kind, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{kind.qualified} "{name}" not found', _resource(kind, name))


def already_exists(kind: Kind, name: str, *, going: bool = False) -> StatusError:
    message = f'{"object is being deleted: " if going else ""}{kind.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _resource(kind, name))


def conflict(kind: Kind, name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, _resource(kind, name))


def apply_conflict(message: str, causes: Iterable[Cause]) -> StatusError:
    """The conflict of server-side apply: fields that other managers own."""
    return StatusError(409, "Conflict", message, {"causes": [_cause(cause) for cause in causes]})


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> StatusError:
    summary = aggregated(causes)
    details = {
        **({"name": name} if name else {}),
        **({"group": kind.group} if kind.group else {}),
        "kind": kind.kind,
        "causes": [_cause(cause) for cause in causes],
    }
    return StatusError(422, "Invalid", f'{kind.qualified_kind} "{name}" is invalid: {summary}', details)


def aggregated(causes: Sequence[Cause]) -> str:
    """All causes in one text, each once."""
    sentences = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    return sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    what = f'{kind.qualified} "{name}"' if name else kind.qualified
    details = _resource(kind, name)
    if causes:
        details["causes"] = [_cause(cause) for cause in causes]
    return StatusError(403, "Forbidden", f"{what} is forbidden: {why}", details)


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def no_such_resource() -> StatusError:
    """The answer to a path under /api or /apis that leads nowhere."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """The answer to a body in a format that is not read here."""
    types = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {types}"
    return StatusError(415, "UnsupportedMediaType", message)


def not_acceptable(available: Sequence[str]) -> StatusError:
    message = f"only the following media types are accepted: {', '.join(available)}"
    return StatusError(406, "NotAcceptable", message)


def too_many_requests(message: str, retry_after: int = 0, causes: Sequence[Cause] = ()) -> StatusError:
    details = {"causes": [_cause(cause) for cause in causes]} if causes else {}
    return StatusError(429, "TooManyRequests", message, details, retry_after=retry_after or None)


def too_large(limit: int) -> StatusError:
    message = f"Request entity too large: limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", message)


def too_much_filled_in(limit: int) -> StatusError:
    message = f"Request entity too large: the defaults of the definition make the object larger; limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", message)


def too_many_values(limit: int) -> StatusError:
    message = f"Request entity too large: server-side apply takes objects of at most {limit} values; use another patch"
    return StatusError(413, "RequestEntityTooLarge", message)


def too_slow(seconds: float) -> StatusError:
    message = f"Timeout: request did not complete within the allotted timeout: its body took longer than {seconds:g} s"
    return StatusError(408, "Timeout", message, {})


def internal_error(message: str) -> StatusError:
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def invalid_value(field: str, value: object, detail: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def invalid_word(field: str, value: object, detail: str) -> Cause:
    """As `invalid_value`, of text that has a type of its own: an operator, a qualified name."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown_json(value)}: {detail}", field)


def not_supported(field: str, value: object, supported: Iterable[str]) -> Cause:
    words = ", ".join(f'"{word}"' for word in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown_json(value)}: supported values: {words}", field)


def duplicate(field: str, value: object) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def field_forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def immutable(field: str, value: object) -> Cause:
    return invalid_value(field, value, "field is immutable")


def shown(value: object) -> str:
    """A value as a message shows it."""
    if isinstance(value, str):
        return quoted(value)
    return shown_json(value)


def shown_json(value: object) -> str:
    """A value as a message shows it that is not plain text for Go: of a type with a name, such as an operator's."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES)


def _resource(kind: Kind, name: str) -> dict[str, Any]:
    return {
        **({"name": name} if name else {}),
        **({"group": kind.group} if kind.group else {}),
        "kind": kind.plural,
    }


def _cause(cause: Cause) -> dict[str, str]:
    named = {"reason": cause.reason, "message": cause.message, "field": cause.field}
    return {key: value for key, value in named.items() if value}
