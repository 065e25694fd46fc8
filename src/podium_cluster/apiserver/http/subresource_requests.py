"""Answers requests about parts of an object: status, scale, binding, eviction, finalize."""

from __future__ import annotations

from typing import Final

import msgspec

from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError, method_not_allowed
from podium_cluster.apiserver.http import bodies, write_requests
from podium_cluster.apiserver.http.options import write_options
from podium_cluster.apiserver.http.paths import CONTAINER_PARTS, Target
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse, Query
from podium_cluster.apiserver.presentation.negotiation import negotiate
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.write_context import WriteOptions
from podium_cluster.apiserver.writes import field_validation, patch
from podium_cluster.apiserver.writes.binding import bind
from podium_cluster.apiserver.writes.eviction import evict
from podium_cluster.apiserver.writes.scale import SCALE, scale_of, set_scale

_encode = msgspec.json.Encoder().encode
_EVICTION: Final = Kind("policy", "v1", "Eviction", "evictions", "eviction", True)
_BINDING: Final = built_in("v1", "Binding")
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


def answer(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> ApiResponse:
    kind, part, method = target.kind, target.subresource, request.method
    if kind.part(part) is None:
        raise _without_containers(api, target)
    if method not in _METHODS:
        raise method_not_allowed()
    options = write_options(request, query) if method != "GET" else WriteOptions()
    if method == "POST" and part in ("binding", "eviction"):
        return _bind_or_evict(api, request, target, options)
    if part == "scale":
        return _scale(api, request, target, options)
    form = negotiate(request.accept, collection=False)
    verbs = () if (found := kind.part(part)) is None else found.verbs
    if method == "GET" and "get" in verbs:
        stored = api.context.stored(kind, target.namespace, target.name or "")
        return write_requests.answer(api, kind, stored, 200, form, query)
    if method == "PUT" and "update" in verbs:
        return write_requests.update_object(api, request, target, query, form)
    if method == "PATCH" and "patch" in verbs:
        return write_requests.patch(api, request, target, query, form)
    raise method_not_allowed()


def _without_containers(api: EmbeddedApi, target: Target) -> StatusError:
    """Why there are no logs and no shell: in the words of `kubectl logs` and `kubectl exec`, which print it."""
    name = target.name or ""
    api.context.stored(POD, target.namespace, name)
    why = f'pod "{name}": podium up runs no containers, so {CONTAINER_PARTS[target.subresource]}'
    return StatusError(501, "NotImplemented", why, {"name": name, "kind": "pods"})


def _bind_or_evict(api: EmbeddedApi, request: ApiRequest, target: Target, options: WriteOptions) -> ApiResponse:
    sent = _BINDING if target.subresource == "binding" else _EVICTION
    obj = bodies.decoded(request.body, request.content_type, sent)
    if sent is _BINDING:
        bodies.check_kind(obj, _BINDING, api.kinds)
    field_validation.check_and_default(sent, obj, options)
    act = bind if sent is _BINDING else evict
    act(api.context, target.namespace, target.name or "", obj, dry_run=options.dry_run)
    return ApiResponse(201, write_requests.CREATED)


def _scale(api: EmbeddedApi, request: ApiRequest, target: Target, options: WriteOptions) -> ApiResponse:
    """GET, PUT or PATCH of `…/scale`."""
    kind = target.kind
    if request.method not in ("GET", "PUT", "PATCH"):
        raise method_not_allowed()
    stored = api.context.stored(kind, target.namespace, target.name or "")
    current = scale_of(kind, storage_form.decoded(stored, kind))
    if request.method == "GET":
        return ApiResponse(200, _encode(current))
    if request.method == "PUT":
        wanted = bodies.decoded(request.body, request.content_type, SCALE)
    else:
        media = bodies.media_type(request.content_type)
        wanted = patch.merged(current, patch.decoded(request.body, media, SCALE), media, SCALE)
        options = msgspec.structs.replace(options, raw=None)
    field_validation.check_and_default(SCALE, wanted, options)
    changed = set_scale(api.context, kind, stored, wanted, options)
    return ApiResponse(200, _encode(scale_of(kind, storage_form.decoded(changed, kind))))
