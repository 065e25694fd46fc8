"""Protobuf from typed Go clients: read as the JSON it would have been."""

import json
import random
from typing import Any

import msgspec
import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.http.protobuf import MEDIA_TYPE, ProtobufError, decode
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from tools.testbed.wire_numbers import NUMBERS_PATH, wire_numbers


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    written = b""
    while value >= 0x80:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def field(number: int, value: int | str | bytes) -> bytes:
    """One field: a number as a varint, anything else with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(key: str, value: str | bytes) -> bytes:
    return field(1, key) + field(2, value)


def enveloped(api_version: str, kind: str, message: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


METADATA = field(1, "web") + field(11, entry("app", "web")) + field(8, field(1, 1_700_000_000))
QUANTITY = field(1, "100m")
CONTAINER = field(1, "main") + field(2, "image") + field(8, field(2, entry("cpu", QUANTITY)))
VOLUME = field(1, "v") + field(2, field(2, field(1, "")))
POD = field(1, METADATA) + field(2, field(1, VOLUME) + field(2, CONTAINER) + field(4, 30))


def test_a_pod_reads_as_it_would_in_json() -> None:
    assert decode(enveloped("v1", "Pod", POD)) == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web", "labels": {"app": "web"}, "creationTimestamp": "2023-11-14T22:13:20Z"},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {"medium": ""}}],
            "containers": [{"name": "main", "image": "image", "resources": {"requests": {"cpu": "100m"}}}],
            "terminationGracePeriodSeconds": 30,
        },
    }


@pytest.mark.parametrize(
    ("api_version", "kind", "message", "path", "value"),
    [
        ("v1", "Secret", field(2, entry("k", b"\x00\xff")), ("data", "k"), "AP8="),
        ("v1", "ConfigMap", field(2, entry("k", "v")), ("data", "k"), "v"),
        ("apps/v1", "Deployment", field(2, field(1, 3)), ("spec", "replicas"), 3),
        ("apps/v1", "Deployment", field(2, field(1, -1)), ("spec", "replicas"), -1),
        (
            "policy/v1",
            "PodDisruptionBudget",
            field(2, field(1, field(1, 1) + field(3, "50%"))),
            ("spec", "minAvailable"),
            "50%",
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            field(2, field(1, field(1, 0) + field(2, 2))),
            ("spec", "minAvailable"),
            2,
        ),
        (
            "coordination.k8s.io/v1",
            "Lease",
            field(2, field(4, field(1, 0) + field(2, 500_000_000))),
            ("spec", "renewTime"),
            "1970-01-01T00:00:00.500000Z",
        ),
        ("apps/v1", "ControllerRevision", field(2, field(1, b'{"a":1}')), ("data",), {"a": 1}),
        ("policy/v1", "DeleteOptions", field(1, 5), ("gracePeriodSeconds",), 5),
        ("v1", "Pod", field(99, "from the future"), ("kind",), "Pod"),
    ],
)
def test_each_form_of_value(api_version: str, kind: str, message: bytes, path: tuple[str, ...], value: Any) -> None:
    found: Any = decode(enveloped(api_version, kind, message))
    for step in path:
        found = found[step]
    assert found == value


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"k8s", b"\x00" * 10, b"k8s\x00\xff\xff"),
        *(enveloped("v1", "Nonsense", b""), enveloped("v1", "Pod", POD)[:-5]),
        enveloped("v1", "Pod", b"\x0a\x02\x08\x01"),  # metadata.name is a number
        enveloped("v1", "Pod", b"\x08\x01"),  # metadata is a number
    ],
)
def test_what_is_no_message_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode(data)


def test_a_pod_in_protobuf_is_created_as_one_in_json_is() -> None:
    api = EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1))
    path = "/api/v1/namespaces/default/pods"
    plain = {
        "metadata": {"name": "other", "labels": {"app": "web"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "main", "image": "image", "resources": {"requests": {"cpu": "100m"}}}],
        },
    }
    bodies = (enveloped("v1", "Pod", POD), MEDIA_TYPE), (msgspec.json.encode(plain), "application/json")
    made = [RequestHandler(api).handle(ApiRequest("POST", path, body, media)) for body, media in bodies]
    specs = [json.loads(each.body)["spec"] for each in made if isinstance(each, ApiResponse)]
    assert specs[0] == specs[1]


def test_the_numbers_are_those_of_the_pinned_version(testbed_programs: None) -> None:
    written = json.loads(NUMBERS_PATH.read_text())["messages"]
    assert written == json.loads(json.dumps(wire_numbers())), (
        "write it anew with `python -m tools.testbed.wire_numbers`"
    )


@pytest.mark.parametrize(
    "envelope",
    [
        b"\x0a\x09\x0a\x02v1\x09" + b"\x0a\x02v1\x09"[:4],  # a string given as 64 bits
        b"\x08\x01",  # the type given as a number
        b"\x0a\x0d\x0a\x02v1\x12\x07ConfigM",  # cut short
        b"\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x04\x0a\x02\x08\x01",  # a name given as a number
        b"\x0a\x09\x0a\x02v1\x12\x03Pod\x10\x05",  # the object given as a number
    ],
)
def test_fields_that_do_not_hold_what_their_type_says_are_refused(envelope: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode(b"k8s\x00" + envelope)
