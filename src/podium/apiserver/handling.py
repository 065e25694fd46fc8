"""One request from its path to its answer: which verb it is, what it carries, and in which form it is answered."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from podium.apiserver import bodies, checking, discovery, listing, patching, reviews, showing
from podium.apiserver.errors import (
    StatusError,
    field_forbidden,
    internal_error,
    invalid,
    method_not_allowed,
    not_found,
)
from podium.apiserver.kinds import ONLY_CREATE, Kind, built_in
from podium.apiserver.negotiation import PLAIN, Form, negotiate
from podium.apiserver.options import check_patch_options, delete_options, text_of, write_options
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
_ORPHANED_PODS: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_EVICTION: Final = Kind("policy", "v1", "Eviction", "evictions", "eviction", True)
_BINDING: Final = built_in("v1", "Binding")


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
        options = write_options(request, query)
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
    options = write_options(request, query) if method != "GET" else Options()
    if method == "POST" and part in ("binding", "eviction"):
        sent = _BINDING if part == "binding" else _EVICTION
        obj = bodies.decoded(request.body, request.content_type, sent)
        if part == "binding":
            bodies.check_kind(obj, _BINDING, api.kinds)
        checking.check_and_default(sent, obj, options)
        act = api.bind if part == "binding" else api.evict
        act(namespace, name, obj, dry_run=options.dry_run)
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
    options = write_options(request, query) if query else Options(raw=text_of(request))
    obj = bodies.decoded(request.body, request.content_type, kind)
    bodies.check_kind(obj, kind, api.kinds)
    if kind.verbs == ONLY_CREATE:
        checking.check_and_default(kind, obj, options)
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
    options = write_options(request, query)
    media = bodies.media_type(request.content_type)
    check_patch_options(media, query)
    body = patching.decoded(request.body, media, target.kind)
    stored, created = api.patch_stored(
        target.kind, target.namespace, target.name or "", body, media, target.subresource, options
    )
    return _answer(api, target.kind, stored, 201 if created else 200, form, query, options)


def _delete(api: Api, request: Request, target: Target, query: Query, form: Form) -> Response:
    kind, name = target.kind, target.name or ""
    options = delete_options(request, query)
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
    options = delete_options(request, query)
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
