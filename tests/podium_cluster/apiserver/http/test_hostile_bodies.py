"""Bodies made to exhaust or confuse a reader: each is refused in the API's words, at once, and nothing falls over."""

import random
import time
from typing import Final

import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse

CONFIG_MAP: Final = built_in("v1", "ConfigMap")
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
JSON, YAML, APPLY = "application/json", "application/yaml", "application/apply-patch+yaml"
MERGE, STRATEGIC, JSON_PATCH = (
    f"application/{each}+json" for each in ("merge-patch", "strategic-merge-patch", "json-patch")
)
ALIASES: Final = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    f"{here}: &{here} [{','.join([f'*{before}'] * 9)}]\n".encode()
    for before, here in zip("abcdefghi", "bcdefghij", strict=True)
)


def named(field: bytes) -> bytes:
    return b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","generation":' + field + b"}}"


HOSTILE: Final = {
    "brackets": b"[" * 100_000,
    "braces": b'{"a":' * 100_000,
    "deep": b'{"data":' + b"[" * 900 + b"]" * 900 + b"}",
    "not UTF-8": b'{"kind":"ConfigMap","metadata":{"name":"a\xff\xfe"}}',
    "a number of 10,000 digits": named(b"9" * 10_000),
    "a number out of range": named(b"1e999"),
    "no number": named(b"NaN"),
    "half a pair": b'{"kind":"ConfigMap","metadata":{"name":"\\ud800"}}',
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    "nothing": b"",
}


@pytest.fixture(scope="module")
def handler() -> RequestHandler:
    api = EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(0))
    api.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    return RequestHandler(api)


def answer(handler: RequestHandler, method: str, target: str, body: bytes, content_type: str) -> ApiResponse:
    found = handler.handle(ApiRequest(method, target, body, content_type))
    assert isinstance(found, ApiResponse)
    return found


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        ("POST", CONFIG_MAPS, JSON),
        ("POST", "/api/v1/namespaces/default/pods/p/binding", JSON),
        ("PUT", f"{CONFIG_MAPS}/a", JSON),
        ("PATCH", f"{CONFIG_MAPS}/a", MERGE),
        ("PATCH", f"{CONFIG_MAPS}/a", STRATEGIC),
        ("PATCH", f"{CONFIG_MAPS}/a", JSON_PATCH),
    ],
)
def test_json_that_no_reader_should_read_is_refused(
    handler: RequestHandler, method: str, path: str, content_type: str, body: bytes
) -> None:
    refused = answer(handler, method, path, body, content_type)
    assert refused.status == 400
    assert b'"reason":"BadRequest"' in refused.body


@pytest.mark.parametrize("body", [ALIASES, b"[" * 100_000, b"{a: " * 100_000, b'kind: "\xff\xfe"', b"\x1f\x8b\x08\x00"])
def test_yaml_that_no_reader_should_read_is_refused(handler: RequestHandler, body: bytes) -> None:
    created = answer(handler, "POST", CONFIG_MAPS, body, YAML)
    applied = answer(handler, "PATCH", f"{CONFIG_MAPS}/a?fieldManager=m", body, APPLY)
    assert (created.status, applied.status) == (400, 400)
    assert b"error converting YAML to JSON: yaml: " in created.body
    assert b"error decoding YAML: error converting YAML to JSON: yaml: " in applied.body


def test_a_body_that_is_too_deep_is_refused(handler: RequestHandler) -> None:
    assert (
        b"json parse error: nested more than 100 levels deep"
        in answer(handler, "POST", CONFIG_MAPS, b"[" * 101, JSON).body
    )


def test_flow_style_is_yaml(handler: RequestHandler) -> None:
    body = b"{kind: ConfigMap, apiVersion: v1, metadata: {name: flow}, data: {a: b}}"
    assert answer(handler, "POST", CONFIG_MAPS, body, YAML).status == 201
    body = b"{kind: ConfigMap, apiVersion: v1, metadata: {name: flow}, data: {a: c}}"
    assert answer(handler, "PATCH", f"{CONFIG_MAPS}/flow?fieldManager=m&force=true", body, APPLY).status == 200


@pytest.mark.parametrize(
    "query", ["resourceVersion=" + "9" * 5000, "limit=" + "9" * 5000, "limit=" + "9" * 30, "continue=" + "W" * 4000]
)
def test_parameters_out_of_range_are_refused(handler: RequestHandler, query: str) -> None:
    assert answer(handler, "GET", f"{CONFIG_MAPS}?{query}", b"", "").status == 400


def test_very_many_unknown_fields_cost_little(handler: RequestHandler) -> None:
    fields = b",".join(b'"f%d":1' % number for number in range(150_000))
    body = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"many"},' + fields + b"}"
    began = time.process_time()
    created = answer(handler, "POST", CONFIG_MAPS, body, JSON)
    answer(handler, "PATCH", f"{CONFIG_MAPS}/many", body, MERGE)
    answer(handler, "PATCH", f"{CONFIG_MAPS}/many?fieldManager=m", body, APPLY)
    assert created.status == 201
    assert len(created.warnings) == 100
    assert time.process_time() - began < 6.0, "it took 8 s for one of these"
