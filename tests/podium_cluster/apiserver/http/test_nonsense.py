"""Nonsense over HTTP gets an answer that says what is wrong with it, never an internal error."""

import logging
import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from tools.kit.effort import examples

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False),
    st.sampled_from(["", "a", "é"]),
)
FIELDS = """
metadata spec status name namespace labels annotations finalizers ownerReferences uid
resourceVersion target kind apiVersion containers replicas selector template data deleteOptions
preconditions gracePeriodSeconds dryRun propagationPolicy orphanDependents generateName nodeName
priorityClassName op path value conditions type $patch
"""
KEYS = st.sampled_from(FIELDS.split())
OBJECT_LIKE = st.sampled_from(["metadata", "spec", "status", "target", "deleteOptions", "preconditions", "data"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=8,
)
BODIES = st.one_of(VALUES, st.dictionaries(OBJECT_LIKE, VALUES, min_size=1), st.lists(st.dictionaries(KEYS, VALUES)))
PATHS = st.sampled_from(
    [
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/pods/p",
        "/api/v1/namespaces/default/pods/p/binding",
        "/api/v1/namespaces/default/pods/p/eviction",
        "/api/v1/namespaces/default/pods/p/status",
        "/api/v1/namespaces/default/bindings",
        "/api/v1/namespaces/default/configmaps/c",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/default/events",
        "/api/v1/namespaces/n/finalize",
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apps/v1/namespaces/default/deployments/d/scale",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    ]
)
OBJECTS = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
MEDIA = st.sampled_from(OBJECTS + PATCHES)
METHODS = st.one_of(
    st.tuples(
        st.sampled_from(["POST", "PUT", "DELETE"]), st.sampled_from(["application/json", "application/json", *OBJECTS])
    ),
    st.tuples(st.just("PATCH"), st.sampled_from(PATCHES)),
    st.tuples(st.just("GET"), st.just("")),
)
QUERIES = st.sampled_from(
    [
        "",
        "?limit=-1",
        "?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhIn0",
        "?continue=%00",
        "?labelSelector=%2C&fieldSelector=%3D",
        "?fieldManager=me&force=true",
        "?resourceVersion=5&resourceVersionMatch=Exact",
        "?watch=1&resourceVersion=-1",
        "?timeoutSeconds=nan&watch=true",
        "?dryRun=All",
        "?gracePeriodSeconds=x",
        "?propagationPolicy=Orphan&orphanDependents=true",
        "?pretty=%ff&fieldValidation=Strict",
    ]
)


def filled() -> EmbeddedApi:
    """An API with the objects that the paths name."""
    api = EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": "n"}}),
        ("/api/v1/namespaces/default/pods", pod),
        ("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}}),
        ("/apis/apps/v1/namespaces/default/deployments", deployment),
    ):
        made = RequestHandler(api).handle(ApiRequest("POST", path, msgspec.json.encode(body), "application/json"))
        assert isinstance(made, ApiResponse)
        assert made.status == 201, made
    return api


API = filled()


@settings(max_examples=examples(120), deadline=None)
@given(METHODS, PATHS, st.one_of(st.just(""), QUERIES), BODIES)
def test_any_json_anywhere(method_and_media: tuple[str, str], path: str, query: str, value: Any) -> None:
    method, media = method_and_media
    log = logging.getLogger("podium_cluster.apiserver.http.handler")
    failures: list[str] = []

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            failures.append(self.format(record))

    heard = Heard()
    log.addHandler(heard)
    try:
        answer = RequestHandler(API).handle(ApiRequest(method, path + query, msgspec.json.encode(value), media))
    finally:
        log.removeHandler(heard)
    assert not failures, failures[0]
    if isinstance(answer, ApiResponse) and answer.status >= 400 and answer.content_type == "application/json":
        assert msgspec.json.decode(answer.body)["kind"] == "Status"


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=60), MEDIA, PATHS)
def test_any_bytes_anywhere(body: bytes, media: str, path: str) -> None:
    for prefix in (b"", b"k8s\x00"):
        answer = RequestHandler(API).handle(ApiRequest("POST", path, prefix + body, media))
        assert isinstance(answer, ApiResponse)
        assert answer.status >= 400 or answer.status == 201
