"""Answers requests that write: create, update, patch and delete, also of parts of an object (status, scale,
binding, eviction, finalize).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError, method_not_allowed
from podium_cluster.apiserver.http import bodies
from podium_cluster.apiserver.http.options import check_patch_options, delete_options, text_of, write_options
from podium_cluster.apiserver.http.paths import CONTAINER_PARTS, Target
from podium_cluster.apiserver.kind import ONLY_CREATE, Kind
from podium_cluster.apiserver.kinds import POD, built_in, rules_of
from podium_cluster.apiserver.kinds.access_control import reviewed
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse, Query
from podium_cluster.apiserver.presentation import lists, objects
from podium_cluster.apiserver.presentation.objects import PLAIN, Form, negotiate
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.write_context import WriteOptions
from podium_cluster.apiserver.writes import field_validation
from podium_cluster.apiserver.writes import patch as patches
from podium_cluster.apiserver.writes.binding import bind
from podium_cluster.apiserver.writes.create import create
from podium_cluster.apiserver.writes.delete import delete
from podium_cluster.apiserver.writes.eviction import evict
from podium_cluster.apiserver.writes.scale import SCALE, scale_of, set_scale
from podium_cluster.apiserver.writes.update import patch_object, update

_encode = msgspec.json.Encoder().encode
CREATED: Final = _encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
_ORPHANED_PODS: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_SELECTS: Final = frozenset({"labelSelector", "fieldSelector", "limit", "continue", "resourceVersion"})


def create_object(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> ApiResponse:
    kind = target.kind
    options = write_options(request, query) if query else WriteOptions(raw=text_of(request))
    obj = bodies.decoded(request.body, request.content_type, kind)
    bodies.check_kind(obj, kind, api.kinds)
    if kind.verbs == ONLY_CREATE:
        field_validation.check_and_default(kind, obj, options)
    if (review := reviewed(kind, obj)) is not None:
        return ApiResponse(201, _encode(review))
    if kind.kind == "Binding":
        name = (obj.get("metadata") or {}).get("name", "")
        bind(api.context, target.namespace, name, obj, dry_run=options.dry_run)
        return ApiResponse(201, CREATED)
    form = PLAIN if request.accept == "application/json" else negotiate(request.accept, collection=False)
    with _warnings_of(options):
        stored = create(api.context, kind, obj, target.namespace, options)
    return answer(api, kind, stored, 201, form, query, options)


@contextmanager
def _warnings_of(options: WriteOptions) -> Iterator[None]:
    """Give what was warned about to the answer of a refused request too."""
    try:
        yield
    except StatusError as error:
        error.warnings = tuple(options.warnings)
        raise


def update_object(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query, form: Form) -> ApiResponse:
    """A PUT of an object or of a subresource in the object's own form."""
    kind = target.kind
    options = write_options(request, query)
    obj = bodies.decoded(request.body, request.content_type, kind)
    bodies.check_kind(obj, kind, api.kinds)
    name, part = target.name or "", target.subresource
    with _warnings_of(options):
        stored, created = update(api.context, kind, target.namespace, name, obj, part, options)
    return answer(api, kind, stored, 201 if created else 200, form, query, options)


def patch(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query, form: Form) -> ApiResponse:
    options = write_options(request, query)
    media = bodies.media_type(request.content_type)
    check_patch_options(media, query)
    body = patches.decoded(request.body, media, target.kind)
    name, part = target.name or "", target.subresource
    with _warnings_of(options):
        stored, created = patch_object(api.context, target.kind, target.namespace, name, body, media, part, options)
    return answer(api, target.kind, stored, 201 if created else 200, form, query, options)


def delete_object(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query, form: Form) -> ApiResponse:
    kind, name = target.kind, target.name or ""
    options = delete_options(request, query)
    deleted = delete(api.context, kind, target.namespace, name, options)
    if deleted.gone and not rules_of(kind).returns_deleted:
        details = {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}
        details["uid"] = deleted.stored.uid
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return ApiResponse(200, _encode(status))
    response = answer(api, kind, deleted.stored, 200, form, query)
    if kind.qualified == "jobs.batch" and not options.propagation and options.orphan_dependents is None:
        response.warnings = (_ORPHANED_PODS,)
    return response


def delete_collection(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> ApiResponse:
    kind = target.kind
    form = negotiate(request.accept, collection=True)
    options = delete_options(request, query)
    found = lists.listed(api.store, kind, target.namespace, {k: v for k, v in query.items() if k in _SELECTS})
    gone: list[Stored] = []
    for item in found.items:
        try:
            delete(api.context, kind, item.namespace, item.name, options)
            gone.append(item)
        except StatusError as error:
            if error.code != 404:
                raise
    return ApiResponse(200, objects.many(api.clock, kind, gone, found.metadata, form, query.get("includeObject", "")))


def answer(
    api: EmbeddedApi,
    kind: Kind,
    stored: Stored,
    status: int,
    form: Form,
    query: Query,
    options: WriteOptions | None = None,
) -> ApiResponse:
    warnings = tuple(options.warnings) if options is not None else ()
    body = objects.one(api.clock, kind, stored, form, query.get("includeObject", ""))
    return ApiResponse(status, body, warnings=warnings)


_part_encode = msgspec.json.Encoder().encode
_EVICTION: Final = Kind("policy", "v1", "Eviction", "evictions", "eviction", True)
_BINDING: Final = built_in("v1", "Binding")
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


def answer_about_part(api: EmbeddedApi, request: ApiRequest, target: Target, query: Query) -> ApiResponse:
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
        return answer(api, kind, stored, 200, form, query)
    if method == "PUT" and "update" in verbs:
        return update_object(api, request, target, query, form)
    if method == "PATCH" and "patch" in verbs:
        return patch(api, request, target, query, form)
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
    return ApiResponse(201, CREATED)


def _scale(api: EmbeddedApi, request: ApiRequest, target: Target, options: WriteOptions) -> ApiResponse:
    """GET, PUT or PATCH of `…/scale`."""
    kind = target.kind
    if request.method not in ("GET", "PUT", "PATCH"):
        raise method_not_allowed()
    stored = api.context.stored(kind, target.namespace, target.name or "")
    current = scale_of(kind, storage_form.decoded(stored, kind))
    if request.method == "GET":
        return ApiResponse(200, _part_encode(current))
    if request.method == "PUT":
        wanted = bodies.decoded(request.body, request.content_type, SCALE)
    else:
        media = bodies.media_type(request.content_type)
        wanted = patches.merged(current, patches.decoded(request.body, media, SCALE), media, SCALE)
        options = msgspec.structs.replace(options, raw=None)
    field_validation.check_and_default(SCALE, wanted, options)
    changed = set_scale(api.context, kind, stored, wanted, options)
    return ApiResponse(200, _part_encode(scale_of(kind, storage_form.decoded(changed, kind))))
