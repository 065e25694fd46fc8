"""Defines the errors that a request to an API server can end in.

There are two kinds, because they are answered in different places: `AccessError` says that Podium was started with a
kubeconfig it cannot use, and `ClientError` is everything one request can end in. Of the latter, `ApiError` is the
server's own refusal, decoded from the `ApiStatus` object it sends, and `Unreachable` is no answer at all. After the
second, only `sent` tells whether a write may have happened.

Messages never contain credentials.
"""

import re
from typing import Any

import msgspec

from podium.errors import UserError
from podium.kube.bounds import UNDECODABLE
from podium.kube.printable import shortened

_RESOURCE = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')
_PATH = re.compile(r'cannot (\w+) path "([^"]+)"')


class AccessError(UserError):
    """A kubeconfig, certificate or credential cannot be used: one sentence with the file, the field and what to do."""


class ClientError(UserError):
    """Everything a request can end in other than an answer."""


class ApiError(ClientError):
    """The server answered no."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        details: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or f"the API server answered {status} {reason}".rstrip())
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.retry_after = retry_after

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """The object changed meanwhile (409 Conflict), or exists already (409 AlreadyExists: see `reason`)."""
        return self.status == 409

    @property
    def forbidden(self) -> bool:
        return self.status == 403

    @property
    def unauthorized(self) -> bool:
        return self.status == 401

    @property
    def final(self) -> bool:
        """Whether asking again is of no use until rights change or what is missing is installed."""
        return self.not_found or self.forbidden or self.unauthorized

    @property
    def gone(self) -> bool:
        """The resource version asked for is too old (410 Gone or Expired)."""
        return self.status == 410

    @property
    def invalid(self) -> bool:
        return self.status == 422

    @property
    def too_many(self) -> bool:
        return self.status == 429


class Unreachable(ClientError):  # noqa: N818  (it reads as what happened)
    """No answer: refused, reset, no such host, TLS, no credentials.

    `sent`: the server may have received the request. `lasting`: the same will happen again until something is
    changed.
    """

    def __init__(self, message: str, *, sent: bool, lasting: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.lasting = lasting


class TimedOut(Unreachable):
    """No answer in time."""


class ApiStatus(msgspec.Struct):
    """metav1.Status, of which every part may be missing."""

    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None


_decode_status = msgspec.json.Decoder(ApiStatus).decode
_QUOTED_BODY = 300
LONGEST_REASON = 100
_LARGEST_STATUS = 1 << 20
"""Bytes of a refusal that is read as a Status: what it says of a thousand objects fits."""


def refusal(status: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """The error for an answer other than 2xx; proxies between send HTML or plain text instead of a Status."""
    try:
        decoded = _decode_status(body[: _LARGEST_STATUS + 1])
    except UNDECODABLE:
        text = body[: _QUOTED_BODY * 4].decode(errors="replace").strip()[:_QUOTED_BODY]
        return ApiError(status, "", f"the API server answered {status}: {text}" if text else "", None, retry_after)
    details = decoded.details or {}
    if retry_after is None and isinstance(seconds := details.get("retryAfterSeconds"), int) and seconds > 0:
        retry_after = float(seconds)
    reason, message = shortened(decoded.reason or "", LONGEST_REASON), shortened(decoded.message or "")
    return ApiError(status, reason, message, details, retry_after)


def missing_rule(error: ApiError) -> str:
    """The rule to add to a Role or ClusterRole; empty where no rule would help (a quota, an admission webhook).

    Finds the RBAC rule that would have allowed a refused request.

    The API server says what it missed in one sentence of fixed form; the rule to add is more useful to the reader:

        pods "a" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace "x"
        → apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]
    """
    if not error.forbidden:
        return ""
    if found := _RESOURCE.search(error.message):
        verb, resource, group = found.groups()
        return f'apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]'
    if found := _PATH.search(error.message):
        verb, path = found.groups()
        return f'nonResourceURLs: ["{path}"], verbs: ["{verb}"]'
    return ""
