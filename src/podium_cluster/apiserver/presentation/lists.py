"""Lists objects as of now or as of a revision, whole or in chunks.

A list in chunks is of one moment: the continue token holds the revision of the first chunk and the name after which to
go on, and every later chunk is taken from what was stored then. When history no longer reaches back the answer is 410,
with another token for a client that prefers to go on with what is stored now.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from typing import Any, Final, NamedTuple

import msgspec

from kubecel.strconv import parse_int64
from podium.kube.documents import read_json
from podium_cluster.apiserver.errors import (
    Cause,
    StatusError,
    bad_request,
    expired,
    field_forbidden,
    invalid,
    not_supported,
)
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.messages import Query, integer
from podium_cluster.apiserver.store.collection import ForgottenError, Stored
from podium_cluster.apiserver.store.object_store import ObjectStore
from podium_cluster.apiserver.store.selection import selection

LIST_OPTIONS: Final = Kind("meta.k8s.io", "v1", "ListOptions", "listoptions", "listoptions", False)
_MATCHES: Final = ("Exact", "NotOlderThan", "")
_NOW: Final = -1
_LONGEST_REVISION: Final = 19  # digits
_TOO_OLD_TO_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class ListPage(NamedTuple):
    items: list[Stored]
    metadata: dict[str, Any]


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


def listed(store: ObjectStore, kind: Kind, namespace: str, query: Query) -> ListPage:
    """What a list request gets; StatusError where its parameters make no sense or ask for what is forgotten."""
    if not query and not kind.custom:
        return ListPage(store.items(kind, namespace), {"resourceVersion": str(store.revision)})
    chosen = selection(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    limit = integer(query, "limit") or 0
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    token = _decoded(query["continue"]) if query.get("continue") else None
    check_version_match(version, match, continued=token is not None)
    revision, items = _as_of(store, kind, namespace, version, match, token)
    after = token.start if token is not None else ""
    if after:
        items = items[bisect_right(items, _position(after), key=lambda item: _position(_key(item))) :]
    if not chosen.everything:
        items = [item for item in items if chosen.matches(item)]
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if limit > 0 and len(items) > limit:
        left = len(items) - limit
        items = items[:limit]
        metadata["continue"] = _encoded(revision, _key(items[-1]))
        if chosen.everything:
            metadata["remainingItemCount"] = left
    elif kind.custom:
        metadata["continue"] = ""
    return ListPage(items, metadata)


def check_version_match(version: str, match: str, *, continued: bool = False, initial_events: bool = False) -> None:
    """Refuse combinations of resourceVersion and resourceVersionMatch that mean nothing."""
    causes: list[Cause] = []
    field = "resourceVersionMatch"
    if match:
        if continued:
            causes.append(field_forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if not version and not initial_events:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            causes.append(field_forbidden(field, why))
        if match not in _MATCHES:
            causes.append(not_supported(field, match, _MATCHES))
        if match == "Exact" and version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            causes.append(field_forbidden(field, why))
    if causes:
        raise invalid(LIST_OPTIONS, "", causes)
    if continued and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def parsed_revision(text: str) -> int:
    """A resourceVersion parameter as a number, 0 when there is none."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise _bad_revision(text, "invalid syntax")
    if len(text.lstrip("0")) > _LONGEST_REVISION:
        raise _bad_revision(text, "value out of range")
    return parse_int64(text) or 0


def _bad_revision(text: str, why: str) -> StatusError:
    problem = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'
    return bad_request(f"invalid resource version: {problem}")


def too_large(revision: int, current: int) -> StatusError:
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(504, "Timeout", message, {"causes": [cause]}, retry_after=1)


def _as_of(
    store: ObjectStore, kind: Kind, namespace: str, version: str, match: str, token: _Token | None
) -> tuple[int, list[Stored]]:
    """The revision that is listed, and everything of it."""
    current = store.revision
    wanted = token.rv if token is not None else parsed_revision(version)
    if wanted > current:
        raise too_large(wanted, current)
    if token is None and (match != "Exact" or wanted == 0):
        return current, store.items(kind, namespace)
    if wanted == _NOW:
        return current, store.items(kind, namespace)
    try:
        items = store.at(kind, wanted)
    except ForgottenError:
        if token is None:
            raise expired("The resourceVersion for the provided list is too old.") from None
        refusal = expired(_TOO_OLD_TO_CONTINUE)
        refusal.continue_token = _encoded(_NOW, token.start)
        raise refusal from None
    return wanted, [item for item in items if item.namespace == namespace] if namespace else items


def _key(stored: Stored) -> str:
    return f"{stored.namespace}/{stored.name}" if stored.namespace else stored.name


def _position(key: str) -> tuple[str, str]:
    """A key as lists are ordered: by "namespace/", then by name."""
    namespace, slash, name = key.rpartition("/")
    return namespace + (slash or "/"), name


def _encoded(revision: int, after: str) -> str:
    raw = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": after + "\x00"})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decoded(token: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        found = msgspec.convert(read_json(raw), _Token)
    except (ValueError, msgspec.ValidationError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if found.v != "meta.k8s.io/v1":
        why = f"continue key is not valid: server does not recognize this encoded version {found.v}"
        raise bad_request(f"invalid continue token: {why}")
    return _Token(found.v, found.rv, found.start.rstrip("\x00"))
