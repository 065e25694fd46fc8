"""Answers requests that read: one object, a list, or a watch."""

from __future__ import annotations

import msgspec

from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError, field_forbidden, invalid, method_not_allowed, not_found
from podium_cluster.apiserver.http.paths import Target
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse, Query, flag, integer
from podium_cluster.apiserver.presentation import lists, objects
from podium_cluster.apiserver.presentation.negotiation import Form, negotiate
from podium_cluster.apiserver.store.collection import ForgottenError
from podium_cluster.apiserver.store.selection import selection
from podium_cluster.apiserver.store.watcher import WatchRequest, too_old

_encode = msgspec.json.Encoder().encode


def get(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query, form: Form) -> ApiResponse:
    kind, namespace, name = target.kind, target.namespace, target.name or ""
    include = query.get("includeObject", "")
    computed = api.computed.get(kind)
    if computed is not None:
        obj = computed.get(namespace, name)
        if obj is None:
            raise not_found(kind, name)
        return ApiResponse(200, _encode(objects.one_object(api.clock, kind, obj, form, include)))
    lists.parsed_revision(query.get("resourceVersion", ""))
    stored = api.context.stored(kind, namespace, name)
    return ApiResponse(200, objects.one(api.clock, kind, stored, form, include))


def list_objects(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> ApiResponse:
    kind = target.kind
    if "list" not in kind.verbs:
        raise method_not_allowed()
    form = negotiate(request.accept, collection=True)
    include = query.get("includeObject", "")
    computed = api.computed.get(kind)
    if computed is not None:
        computed_objects = computed.list(target.namespace, query.get("labelSelector", ""))
        return ApiResponse(200, _encode(objects.many_objects(api.clock, kind, computed_objects, {}, form, include)))
    if "sendInitialEvents" in query:
        cause = field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
        raise invalid(lists.LIST_OPTIONS, "", [cause])
    found = lists.listed(api.store, kind, target.namespace, query)
    return ApiResponse(200, objects.many(api.clock, kind, found.items, found.metadata, form, include))


def watch(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> WatchRequest:
    kind = target.kind
    form = negotiate(request.accept, collection=True, watch=True)
    chosen = selection(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    streamed = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    _check_initial_events(streamed, match)
    lists.check_version_match(version, match, initial_events=streamed is not None)
    try:
        revision = lists.parsed_revision(version)
    except StatusError as error:  # A watch words it differently.
        raise StatusError(500, "", error.message.removeprefix("invalid resource version: ")) from None
    current = api.store.revision
    timeout = integer(query, "timeoutSeconds")
    wanted = WatchRequest(
        kind,
        target.namespace,
        chosen,
        revision or current,
        initial=bool(streamed) or (streamed is None and revision == 0),
        marks_initial_end=bool(streamed),
        bookmarks=flag(query, "allowWatchBookmarks"),
        timeout=float(timeout) if timeout else None,
        show=objects.shower(api.clock, kind, form, query.get("includeObject", "")),
    )
    if not wanted.initial:
        try:
            api.store.changes_since(kind, wanted.revision, 0)
        except ForgottenError as error:
            wanted.failure = too_old(wanted.revision, error)
    return wanted


def _check_initial_events(streamed: bool | None, match: str) -> None:
    if streamed is None and match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise invalid(lists.LIST_OPTIONS, "", [field_forbidden("resourceVersionMatch", why)])
    if streamed is not None and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise invalid(lists.LIST_OPTIONS, "", [field_forbidden("resourceVersionMatch", why)])
