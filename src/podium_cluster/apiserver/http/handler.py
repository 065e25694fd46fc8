"""Carries a request from its path to its answer: which verb it is, and who reads or writes for it.

request → paths.resolve → bodies, options → writes (or presentation.lists) → store → presentation → response

Requests that read are answered here, those that write in write_requests.py. Checks that take long run in one thread, so
that the API answers other requests meanwhile. One check runs at a time, the others wait; beyond MOST_WAITING they are
turned away for a moment (429). A check ends when its time is over (504), when its client leaves, or when the server
stops.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from kubecel.limits import TookTooLongError, time_limit
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import (
    StatusError,
    field_forbidden,
    internal_error,
    invalid,
    method_not_allowed,
    not_found,
    too_many_requests,
)
from podium_cluster.apiserver.http import write_requests
from podium_cluster.apiserver.http.paths import NOWHERE, Target, resolve
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse, Query, flag, integer
from podium_cluster.apiserver.presentation import lists, objects
from podium_cluster.apiserver.presentation.discovery import Discovery, not_found_page
from podium_cluster.apiserver.presentation.objects import Form, negotiate
from podium_cluster.apiserver.store.collection import ForgottenError
from podium_cluster.apiserver.store.selection import selection
from podium_cluster.apiserver.store.watcher import WatchRequest, too_old
from podium_cluster.apiserver.validation.slow_checks import Causes, SlowCheck, Verdicts, known_verdicts

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class RequestHandler:
    """Answers requests about one embedded API. Nothing in it waits: a watch comes back as what it is about."""

    def __init__(self, api: EmbeddedApi) -> None:
        self._api = api
        self._discovery = Discovery(api.kinds, api.writable)

    def handle(self, request: ApiRequest) -> ApiResponse | WatchRequest:
        """The answer to any request, however long its checks take; never raises."""
        found = self.attempt(request, None)
        assert not isinstance(found, SlowCheck)
        return found

    def attempt(self, request: ApiRequest, verdicts: Verdicts | None) -> ApiResponse | WatchRequest | SlowCheck:
        """The answer, or a check that takes long: then nothing has changed, and the request is to be attempted again
        with its verdict among `verdicts`."""
        try:
            if found := self._discovery.answer(request):
                return found
            with known_verdicts(verdicts):
                return _resource(self._api, request)
        except SlowCheck as check:
            return check
        except StatusError as error:
            return failure(error)
        except Exception as error:  # a mistake of ours is answered with 500, as Go's panics are
            _log.exception("%s %s failed", request.method, request.target)
            return failure(internal_error(f"{type(error).__name__}: {error}"))


def failure(error: StatusError) -> ApiResponse:
    if error is NOWHERE:
        return not_found_page()
    return ApiResponse(error.code, _encode(error.status()), warnings=error.warnings, retry_after=error.retry_after)


def _resource(api: EmbeddedApi, request: ApiRequest) -> ApiResponse | WatchRequest:
    path, query = request.path, request.query
    if (plain := _without_watch(path)) is not None:
        path = plain
        query["watch"] = "true"
    target = resolve(api.kinds, path)
    if target.name is not None and plain is not None:
        query["fieldSelector"] = f"metadata.name={target.name}"
        target = target._replace(name=None)
    if target.subresource:
        return write_requests.answer_about_part(api, request, target, query)
    if target.name is None:
        return _collection(api, request, target, query)
    return _object(api, request, target, query)


def _without_watch(path: str) -> str | None:
    """/api/v1/watch/pods, the old way to watch, without its `watch`; None for any other path."""
    steps = path.split("/")
    at = 3 if path.startswith("/api/") else 4
    return "/".join(steps[:at] + steps[at + 1 :]) if len(steps) > at and steps[at] == "watch" else None


def _collection(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> ApiResponse | WatchRequest:
    kind, namespace = target.kind, target.namespace
    if request.method == "GET":
        if flag(query, "watch") and "watch" in kind.verbs:
            return watch(api, request, target, query)
        return list_objects(api, request, target, query)
    if request.method == "POST" and "create" in kind.verbs and (namespace or not kind.namespaced):
        return write_requests.create_object(api, request, target, query)
    if request.method == "DELETE" and "deletecollection" in kind.verbs and (namespace or not kind.namespaced):
        return write_requests.delete_collection(api, request, target, query)
    raise method_not_allowed()


def _object(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> ApiResponse:
    method, verbs = request.method, target.kind.verbs
    form = negotiate(request.accept, collection=False)
    if method == "GET" and "get" in verbs:
        return get(api, request, target, query, form)
    if method == "PUT" and "update" in verbs:
        return write_requests.update_object(api, request, target, query, form)
    if method == "PATCH" and "patch" in verbs:
        return write_requests.patch(api, request, target, query, form)
    if method == "DELETE" and "delete" in verbs:
        return write_requests.delete_object(api, request, target, query, form)
    raise method_not_allowed()


__encode = msgspec.json.Encoder().encode


def get(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query, form: Form) -> ApiResponse:
    kind, namespace, name = target.kind, target.namespace, target.name or ""
    include = query.get("includeObject", "")
    computed = api.computed.get(kind)
    if computed is not None:
        obj = computed.get(namespace, name)
        if obj is None:
            raise not_found(kind, name)
        return ApiResponse(200, __encode(objects.one_object(api.clock, kind, obj, form, include)))
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
        return ApiResponse(200, __encode(objects.many_objects(api.clock, kind, computed_objects, {}, form, include)))
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


SECONDS: Final = 60.0
"""The most that one check may take, as long as kube-apiserver gives a whole request."""
MOST_WAITING: Final = 64
_WITHOUT_CHECKS: Final = ("GET", "HEAD", "DELETE")
_ATTEMPTS: Final = 5
"""How often an object may change while it is checked."""


class SlowChecker:
    """Until it is started, every check runs within its request."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._thread: ThreadPoolExecutor | None = None
        self._waiting = 0
        self._stopped = False

    def start(self) -> None:
        self._thread = ThreadPoolExecutor(1, "slow check")
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None

    async def handled(self, handler: RequestHandler, request: ApiRequest) -> ApiResponse | WatchRequest:
        """The answer to the request, after every check that it needs."""
        verdicts: Verdicts | None = None if self._thread is None or request.method in _WITHOUT_CHECKS else {}
        for _ in range(_ATTEMPTS):
            found = handler.attempt(request, verdicts)
            if not isinstance(found, SlowCheck):
                return found
            assert verdicts is not None, "only with verdicts is a check left out"
            try:
                verdicts[found.key] = await self._verdict(found)
            except StatusError as error:
                return failure(error)
        return failure(too_many_requests("the object keeps changing while it is checked; try again", 1))

    async def _verdict(self, check: SlowCheck) -> Causes:
        if self._thread is None or self._waiting >= MOST_WAITING:
            raise too_many_requests("too many objects wait for their rules to be evaluated; try again", 1)
        left = False

        def run() -> Causes:
            with time_limit(self._seconds, lambda: left or self._stopped):
                return check.run()

        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, run)
        except TookTooLongError:
            why = f"the rules of the definition took longer than {self._seconds:g} s"
            message = f"Timeout: request did not complete within the allotted timeout: {why}"
            raise StatusError(504, "Timeout", message, {}) from None
        finally:
            left = True
            self._waiting -= 1
