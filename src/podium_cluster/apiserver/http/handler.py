"""Carries a request from its path to its answer: which verb it is, and who reads or writes for it.

request → paths.resolve → bodies, options → writes (or presentation.lists) → store → presentation → response
"""

from __future__ import annotations

import logging

import msgspec

from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError, internal_error, method_not_allowed
from podium_cluster.apiserver.http import read_requests, subresource_requests, write_requests
from podium_cluster.apiserver.http.paths import NOWHERE, Target, resolve
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse, Query, flag
from podium_cluster.apiserver.presentation.discovery import Discovery, not_found_page
from podium_cluster.apiserver.presentation.negotiation import negotiate
from podium_cluster.apiserver.store.watcher import WatchRequest
from podium_cluster.apiserver.validation.slow_checks import SlowCheck, Verdicts, known_verdicts

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
        return subresource_requests.answer(api, request, target, query)
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
            return read_requests.watch(api, request, target, query)
        return read_requests.list_objects(api, request, target, query)
    if request.method == "POST" and "create" in kind.verbs and (namespace or not kind.namespaced):
        return write_requests.create_object(api, request, target, query)
    if request.method == "DELETE" and "deletecollection" in kind.verbs and (namespace or not kind.namespaced):
        return write_requests.delete_collection(api, request, target, query)
    raise method_not_allowed()


def _object(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> ApiResponse:
    method, verbs = request.method, target.kind.verbs
    form = negotiate(request.accept, collection=False)
    if method == "GET" and "get" in verbs:
        return read_requests.get(api, request, target, query, form)
    if method == "PUT" and "update" in verbs:
        return write_requests.update_object(api, request, target, query, form)
    if method == "PATCH" and "patch" in verbs:
        return write_requests.patch(api, request, target, query, form)
    if method == "DELETE" and "delete" in verbs:
        return write_requests.delete_object(api, request, target, query, form)
    raise method_not_allowed()
