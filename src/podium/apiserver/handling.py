"""One request from its path to its answer: which verb it is, what it carries, and in which form it is answered."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.apiserver import bodies, discovery, listing, patching, reviews, showing
from podium.apiserver.deleting import DeleteOptions
from podium.apiserver.errors import (
    Cause,
    StatusError,
    bad_request,
    field_forbidden,
    internal_error,
    invalid,
    invalid_value,
    method_not_allowed,
    not_found,
    not_supported,
    required,
)
from podium.apiserver.kinds import Kind
from podium.apiserver.negotiation import PLAIN, Form, negotiate
from podium.apiserver.requests import NOWHERE, Request, Response, Target, flag, integer, resolve
from podium.apiserver.rules import rules_of
from podium.apiserver.selection import selection
from podium.apiserver.store import ForgottenError, Stored
from podium.apiserver.subresources import scale
from podium.apiserver.watches import WatchRequest, too_old
from podium.apiserver.writing import Options

if TYPE_CHECKING:
    from podium.apiserver.api import Api

Query = dict[str, str]

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode
_CREATED: Final = _encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
_DELETE_OPTIONS: Final = Kind("meta.k8s.io", "v1", "DeleteOptions", "deleteoptions", "deleteoptions", False)
_OPTIONS: Final = {
    "POST": Kind("meta.k8s.io", "v1", "CreateOptions", "", "", False),
    "PUT": Kind("meta.k8s.io", "v1", "UpdateOptions", "", "", False),
    "PATCH": Kind("meta.k8s.io", "v1", "PatchOptions", "", "", False),
    "DELETE": _DELETE_OPTIONS,
}
_ORPHANED_PODS: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_PROPAGATION: Final = ("Foreground", "Background", "Orphan")
_LONGEST_MANAGER: Final = 128
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")


def handle(api: Api, request: Request) -> Response | WatchRequest:
    """The answer to any request; never raises."""
    try:
        return discovery.answer(api, request) or _resource(api, request)
    except StatusError as error:
        return failure(error)
    except Exception as error:
        _log.exception("%s %s failed", request.method, request.target)
        return failure(internal_error(f"{type(error).__name__}: {error}"))


def failure(error: StatusError) -> Response:
    if error is NOWHERE:
        return discovery.not_found_page()
    return Response(error.code, _encode(error.status()), warnings=error.warnings, retry_after=error.retry_after)


def _resource(api: Api, request: Request) -> Response | WatchRequest:
    path, query = request.path, request.query
    if (plain := _without_watch(path)) is not None:
        path = plain
        query["watch"] = "true"
    target = resolve(api.kinds, path)
    if target.name is not None and plain is not None:
        query["fieldSelector"] = f"metadata.name={target.name}"
        target = target._replace(name=None)
    if target.subresource:
        return _part(api, request, target, query)
    if target.name is None:
        return _collection(api, request, target, query)
    return _object(api, request, target, query)


def _without_watch(path: str) -> str | None:
    """/api/v1/watch/pods, the old way to watch, without its `watch`; None for any other path."""
    steps = path.split("/")
    at = 3 if path.startswith("/api/") else 4
    return "/".join(steps[:at] + steps[at + 1 :]) if len(steps) > at and steps[at] == "watch" else None


def _collection(api: Api, request: Request, target: Target, query: Query) -> Response | WatchRequest:
    kind, namespace = target.kind, target.namespace
    if request.method == "GET":
        if flag(query, "watch") and "watch" in kind.verbs:
            return _watch(api, request, target, query)
        return _list(api, request, target, query)
    if request.method == "POST" and "create" in kind.verbs and (namespace or not kind.namespaced):
        return _create(api, request, target, query)
    if request.method == "DELETE" and "deletecollection" in kind.verbs and (namespace or not kind.namespaced):
        return _delete_collection(api, request, target, query)
    raise method_not_allowed()


def _object(api: Api, request: Request, target: Target, query: Query) -> Response:
    kind, namespace, name = target.kind, target.namespace, target.name or ""
    method = request.method
    form = negotiate(request.accept, collection=False)
    if method == "GET" and "get" in kind.verbs:
        computed = api.computed.get(kind)
        if computed is not None:
            obj = computed.get(namespace, name)
            if obj is None:
                raise not_found(kind, name)
            return Response(200, _encode(showing.one_object(api, kind, obj, form, query.get("includeObject", ""))))
        listing.parsed_revision(query.get("resourceVersion", ""))
        return _answer(api, kind, api.stored(kind, namespace, name), 200, form, query)
    if method == "PUT" and "update" in kind.verbs:
        options = _options(request, query)
        obj = bodies.decoded(request.body, request.content_type, kind)
        bodies.check_kind(obj, kind, api.kinds)
        stored, created = api.update_stored(kind, namespace, name, obj, "", options)
        return _answer(api, kind, stored, 201 if created else 200, form, query, options)
    if method == "PATCH" and "patch" in kind.verbs:
        return _patch(api, request, target, query, form)
    if method == "DELETE" and "delete" in kind.verbs:
        return _delete(api, request, target, query, form)
    raise method_not_allowed()


def _part(api: Api, request: Request, target: Target, query: Query) -> Response:
    kind, namespace, name, part = target.kind, target.namespace, target.name or "", target.subresource
    method = request.method
    options = _options(request, query) if method != "GET" else Options()
    if method == "POST" and part in ("binding", "eviction"):
        known = kind.part(part)
        assert known is not None
        obj = bodies.decoded(request.body, request.content_type, kind)
        if part == "binding":
            bodies.check_kind(obj, kind, api.kinds, expected="Binding", version="v1")
            api.bind(namespace, name, obj, dry_run=options.dry_run)
        else:
            api.evict(namespace, name, obj, dry_run=options.dry_run)
        return Response(201, _CREATED)
    if part == "scale":
        return scale.answer(api, request, target, options)
    form = negotiate(request.accept, collection=False)
    verbs = () if (found := kind.part(part)) is None else found.verbs
    if method == "GET" and "get" in verbs:
        return _answer(api, kind, api.stored(kind, namespace, name), 200, form, query)
    if method == "PUT" and "update" in verbs:
        obj = bodies.decoded(request.body, request.content_type, kind)
        bodies.check_kind(obj, kind, api.kinds)
        stored, _ = api.update_stored(kind, namespace, name, obj, part, options)
        return _answer(api, kind, stored, 200, form, query, options)
    if method == "PATCH" and "patch" in verbs:
        return _patch(api, request, target, query, form)
    raise method_not_allowed()


def _list(api: Api, request: Request, target: Target, query: Query) -> Response:
    kind = target.kind
    if "list" not in kind.verbs:
        raise method_not_allowed()
    form = negotiate(request.accept, collection=True)
    include = query.get("includeObject", "")
    computed = api.computed.get(kind)
    if computed is not None:
        objects = computed.list(target.namespace, query.get("labelSelector", ""))
        return Response(200, _encode(showing.many_objects(api, kind, objects, {}, form, include)))
    if "sendInitialEvents" in query:
        cause = field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
        raise invalid(listing.LIST_OPTIONS, "", [cause])
    found = listing.listed(api, kind, target.namespace, query)
    return Response(200, showing.many(api, kind, found.items, found.metadata, form, include))


def _watch(api: Api, request: Request, target: Target, query: Query) -> WatchRequest:
    kind = target.kind
    form = negotiate(request.accept, collection=True, watch=True)
    chosen = selection(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    asked, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    streamed = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    _check_initial_events(streamed, match)
    listing.check_version_match(asked, match, initial_events=streamed is not None)
    try:
        revision = listing.parsed_revision(asked)
    except StatusError as error:  # A watch says it less well than a list.
        raise StatusError(500, "", error.message.removeprefix("invalid resource version: ")) from None
    current = api.store.revision
    timeout = integer(query, "timeoutSeconds")
    watch = WatchRequest(
        kind,
        target.namespace,
        chosen,
        revision or current,
        initial=bool(streamed) or (streamed is None and revision == 0),
        marks_initial_end=bool(streamed),
        bookmarks=flag(query, "allowWatchBookmarks"),
        timeout=float(timeout) if timeout else None,
        show=showing.shower(api, kind, form, query.get("includeObject", "")),
    )
    if not watch.initial:
        try:
            api.store.changes_since(kind, watch.revision, 0)
        except ForgottenError as error:
            watch.failure = too_old(watch.revision, error)
    return watch


def _check_initial_events(streamed: bool | None, match: str) -> None:
    if streamed is None and match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise invalid(listing.LIST_OPTIONS, "", [field_forbidden("resourceVersionMatch", why)])
    if streamed is not None and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise invalid(listing.LIST_OPTIONS, "", [field_forbidden("resourceVersionMatch", why)])


def _create(api: Api, request: Request, target: Target, query: Query) -> Response:
    kind = target.kind
    options = _options(request, query) if query else Options(raw=_text(request))
    obj = bodies.decoded(request.body, request.content_type, kind)
    bodies.check_kind(obj, kind, api.kinds)
    if (review := reviews.reviewed(kind, obj)) is not None:
        return Response(201, _encode(review))
    if kind.kind == "Binding":
        name = (obj.get("metadata") or {}).get("name", "")
        api.bind(target.namespace, name, obj, dry_run=options.dry_run)
        return Response(201, _CREATED)
    form = PLAIN if request.accept == "application/json" else negotiate(request.accept, collection=False)
    try:
        stored = api.create_stored(kind, obj, target.namespace, options)
    except StatusError as error:
        error.warnings = tuple(options.warnings)
        raise
    return _answer(api, kind, stored, 201, form, query, options)


def _patch(api: Api, request: Request, target: Target, query: Query, form: Form) -> Response:
    options = _options(request, query)
    media = bodies.media_type(request.content_type)
    _check_patch_options(media, query)
    body = patching.decoded(request.body, media, target.kind)
    stored, created = api.patch_stored(
        target.kind, target.namespace, target.name or "", body, media, target.subresource, options
    )
    return _answer(api, target.kind, stored, 201 if created else 200, form, query, options)


def _check_patch_options(media: str, query: Query) -> None:
    causes = []
    if media == patching.APPLY and not query.get("fieldManager"):
        causes.append(required("fieldManager", "is required for apply patch"))
    if media != patching.APPLY and "force" in query:
        causes.append(field_forbidden("force", "may not be specified for non-apply patch"))
    if causes:
        raise invalid(_OPTIONS["PATCH"], "", causes)


def _delete(api: Api, request: Request, target: Target, query: Query, form: Form) -> Response:
    kind, name = target.kind, target.name or ""
    options = _delete_options(request, query)
    deleted = api.delete_stored(kind, target.namespace, name, options)
    if deleted.gone and not rules_of(kind).returns_deleted:
        details = {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}
        details["uid"] = deleted.stored.uid
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return Response(200, _encode(status))
    answer = _answer(api, kind, deleted.stored, 200, form, query)
    if kind.qualified == "jobs.batch" and not options.propagation and options.orphan_dependents is None:
        answer.warnings = (_ORPHANED_PODS,)
    return answer


def _delete_collection(api: Api, request: Request, target: Target, query: Query) -> Response:
    kind = target.kind
    form = negotiate(request.accept, collection=True)
    options = _delete_options(request, query)
    found = listing.listed(api, kind, target.namespace, {k: v for k, v in query.items() if k in _SELECTS})
    gone: list[Stored] = []
    for item in found.items:
        try:
            api.delete_stored(kind, item.namespace, item.name, options)
            gone.append(item)
        except StatusError as error:
            if error.code != 404:
                raise
    return Response(200, showing.many(api, kind, gone, found.metadata, form, query.get("includeObject", "")))


_SELECTS: Final = frozenset({"labelSelector", "fieldSelector", "limit", "continue", "resourceVersion"})


def _answer(
    api: Api, kind: Kind, stored: Stored, status: int, form: Form, query: Query, options: Options | None = None
) -> Response:
    warnings = tuple(options.warnings) if options is not None else ()
    body = showing.one(api, kind, stored, form, query.get("includeObject", ""))
    return Response(status, body, warnings=warnings)


def _options(request: Request, query: Query) -> Options:
    validation = query.get("fieldValidation", "")
    kind = _OPTIONS[request.method]
    if validation not in _FIELD_VALIDATION:
        raise invalid(kind, "", [not_supported("fieldValidation", validation, _FIELD_VALIDATION)])
    if causes := _manager_causes(query.get("fieldManager", "")):
        raise invalid(kind, "", causes)
    manager = query.get("fieldManager", "") or request.user_agent.partition("/")[0]
    return Options(
        dry_run=_dry_run(query.get("dryRun"), kind),
        field_validation=validation,
        manager=manager,
        force=flag(query, "force"),
        is_patch=request.method == "PATCH",
        raw=_text(request),
    )


def _manager_causes(manager: str) -> list[Cause]:
    causes = []
    if len(manager.encode()) > _LONGEST_MANAGER:
        told = f"Too long: may not be more than {_LONGEST_MANAGER} bytes"
        causes.append(Cause("FieldValueTooLong", told, "fieldManager"))
    for at, character in enumerate(manager):
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {at})"
            causes.append(invalid_value("fieldManager", manager, why))
    return causes


def _text(request: Request) -> bytes | None:
    """The body, where fields given twice can be found in it."""
    media = bodies.media_type(request.content_type)
    return request.body if not media or media.endswith("json") else None


def _dry_run(value: str | None, kind: Kind) -> bool:
    if not value:
        return False
    if value != "All":
        raise invalid(kind, "", [not_supported("dryRun", [value], ("All",))])
    return True


def _delete_options(request: Request, query: Query) -> DeleteOptions:
    said: dict[str, Any] = {}
    if request.body:
        said = bodies.decoded(request.body, request.content_type, _DELETE_OPTIONS)
    if (said_kind := said.get("kind", "DeleteOptions")) != "DeleteOptions":
        raise bad_request(f'no kind "{said_kind}" is registered for version "{said.get("apiVersion", "")}" in scheme')
    preconditions = said.get("preconditions") or {}
    grace = said.get("gracePeriodSeconds")
    orphan = said.get("orphanDependents")
    if grace is None:
        grace = integer(query, "gracePeriodSeconds")
    if orphan is None and "orphanDependents" in query:
        orphan = flag(query, "orphanDependents")
    if grace is not None and not isinstance(grace, int):
        raise bad_request("gracePeriodSeconds must be a whole number of seconds")
    propagation = said.get("propagationPolicy") or query.get("propagationPolicy", "")
    if propagation and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        raise invalid(_DELETE_OPTIONS, "", [invalid_value("propagationPolicy", propagation, why)])
    if propagation not in ("", *_PROPAGATION):
        causes = [not_supported("propagationPolicy", propagation, (*_PROPAGATION, "nil"))]
        raise invalid(_DELETE_OPTIONS, "", causes)
    dry_run = said.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else [])
    return DeleteOptions(
        grace_seconds=grace,
        propagation=propagation,
        orphan_dependents=orphan,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=_dry_run(dry_run[0] if dry_run else None, _DELETE_OPTIONS),
    )
