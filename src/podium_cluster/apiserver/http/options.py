"""Reads how a request wants to write or delete: its parameters and, for a deletion, its body."""

from __future__ import annotations

from typing import Final

import msgspec

from podium_cluster.apiserver.errors import (
    Cause,
    bad_request,
    field_forbidden,
    invalid,
    invalid_value,
    not_supported,
    required,
)
from podium_cluster.apiserver.http import bodies
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.messages import ApiRequest, Query, flag, integer
from podium_cluster.apiserver.write_context import DeleteOptions, WriteOptions
from podium_cluster.apiserver.writes import patch

_DELETE: Final = Kind("meta.k8s.io", "v1", "DeleteOptions", "deleteoptions", "deleteoptions", False)
_NAMED: Final = {
    "POST": Kind("meta.k8s.io", "v1", "CreateOptions", "", "", False),
    "PUT": Kind("meta.k8s.io", "v1", "UpdateOptions", "", "", False),
    "PATCH": Kind("meta.k8s.io", "v1", "PatchOptions", "", "", False),
    "DELETE": _DELETE,
}
_PROPAGATION: Final = ("Foreground", "Background", "Orphan")
_LONGEST_MANAGER: Final = 128
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")


def write_options(request: ApiRequest, query: Query) -> WriteOptions:
    """The options of a create, an update or a patch."""
    validation = query.get("fieldValidation", "")
    kind = _NAMED[request.method]
    if validation not in _FIELD_VALIDATION:
        raise invalid(kind, "", [not_supported("fieldValidation", validation, _FIELD_VALIDATION)])
    if causes := _manager_causes(query.get("fieldManager", "")):
        raise invalid(kind, "", causes)
    manager = query.get("fieldManager", "") or request.user_agent.partition("/")[0]
    return WriteOptions(
        dry_run=_dry_run(query.get("dryRun"), kind),
        field_validation=validation,
        manager=manager,
        force=flag(query, "force"),
        is_patch=request.method == "PATCH",
        raw=text_of(request),
    )


def text_of(request: ApiRequest) -> bytes | None:
    """The body, where fields given twice can be found in it."""
    media = bodies.media_type(request.content_type)
    return request.body if media.endswith("json") else None


def check_patch_options(media: str, query: Query) -> None:
    """Refuse parameters that do not go with the kind of patch."""
    causes = []
    if media == patch.APPLY and not query.get("fieldManager"):
        causes.append(required("fieldManager", "is required for apply patch"))
    if media != patch.APPLY and "force" in query:
        causes.append(field_forbidden("force", "may not be specified for non-apply patch"))
    if causes:
        raise invalid(_NAMED["PATCH"], "", causes)


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteBody(msgspec.Struct, rename="camel"):
    """The body of a DELETE, as far as it matters here."""

    kind: str | None = None
    api_version: str | None = None
    grace_period_seconds: int | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    preconditions: _Preconditions | None = None
    dry_run: list[str] | None = None


def delete_options(request: ApiRequest, query: Query) -> DeleteOptions:
    """The options of a deletion; what the body does not say the parameters may."""
    sent = _delete_body(request)
    grace = sent.grace_period_seconds
    if grace is None:
        grace = integer(query, "gracePeriodSeconds")
    orphan = sent.orphan_dependents
    if orphan is None and "orphanDependents" in query:
        orphan = flag(query, "orphanDependents")
    propagation = sent.propagation_policy or query.get("propagationPolicy", "")
    if propagation and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        raise invalid(_DELETE, "", [invalid_value("propagationPolicy", propagation, why)])
    if propagation not in ("", *_PROPAGATION):
        raise invalid(_DELETE, "", [not_supported("propagationPolicy", propagation, (*_PROPAGATION, "nil"))])
    dry_run = sent.dry_run[0] if sent.dry_run else query.get("dryRun")
    preconditions = sent.preconditions or _Preconditions()
    return DeleteOptions(
        grace_seconds=grace,
        propagation=propagation,
        orphan_dependents=orphan,
        uid=preconditions.uid or "",
        resource_version=preconditions.resource_version or "",
        dry_run=_dry_run(dry_run, _DELETE),
    )


def _delete_body(request: ApiRequest) -> _DeleteBody:
    if not request.body:
        return _DeleteBody()
    try:
        sent = msgspec.convert(bodies.decoded(request.body, request.content_type, _DELETE), _DeleteBody)
    except msgspec.ValidationError as error:
        raise bad_request(f"DeleteOptions cannot be read: {error}") from None
    if sent.kind not in (None, "", "DeleteOptions"):
        raise bad_request(f'no kind "{sent.kind}" is registered for version "{sent.api_version or ""}" in scheme')
    return sent


def _dry_run(value: str | None, kind: Kind) -> bool:
    if not value:
        return False
    if value != "All":
        raise invalid(kind, "", [not_supported("dryRun", [value], ("All",))])
    return True


def _manager_causes(manager: str) -> list[Cause]:
    causes = []
    if len(manager.encode(errors="replace")) > _LONGEST_MANAGER:
        message = f"Too long: may not be more than {_LONGEST_MANAGER} bytes"
        causes.append(Cause("FieldValueTooLong", message, "fieldManager"))
    for at, character in enumerate(manager):
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {at})"
            causes.append(invalid_value("fieldManager", manager, why))
    return causes
