"""Fingerprints, hashes and placement vectors: the vectors of the specification, and what reads them back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_plugins.node_resource_topology_match.fingerprint import fingerprint, xxh64
from podium_plugins.node_resource_topology_match.victims import (
    ALPHABET,
    ENDS,
    METADATA,
    VECTOR,
    decode_numbers,
    placement_of,
)
from tests.together.zone_worlds import make_report, make_zone, zone_pod
from tools.kit.builders import make_pod


def test_the_fingerprints_of_the_specification() -> None:
    pods = [make_pod("a"), make_pod("b", namespace="kube-system")]
    assert fingerprint(pods) == fingerprint(reversed(pods)) == "pfp0v001946bb722063b6bab"
    assert fingerprint([]) == "pfp0v001ef46db3751d8e999"


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
    ],
)
def test_xxh64(data: bytes, seed: int, expected: int) -> None:
    assert xxh64(data, seed) == expected


def encode(number: int) -> str:
    if number < ENDS:
        return ALPHABET[number]
    digits, last = divmod(number - ENDS, ENDS)
    text = ""
    while True:
        digits, digit = divmod(digits, len(ALPHABET) - ENDS)
        text = ALPHABET[ENDS + digit] + text
        if not digits:
            return text + ALPHABET[last]


def test_the_alphabet_is_printable_and_safe_in_json_and_xml() -> None:
    assert len(ALPHABET) == 89
    assert not set(ALPHABET) & set('"&<>\\ ')


@given(st.lists(st.integers(0, 50_000)))
def test_numbers_are_read_back(numbers: list[int]) -> None:
    assert list(decode_numbers("".join(map(encode, numbers)))) == numbers


@pytest.mark.parametrize("text", ["é", "~", chr(34)])
def test_what_is_no_number_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a symbol of LEB89|the last number has no end"):
        list(decode_numbers(text))


def test_containers_are_found_in_their_zones() -> None:
    pods = [zone_pod({"cpu": 1, "memory": "1Gi"}, {"cpu": 2, "memory": "1Gi"}, name=name) for name in ("a", "b")]
    order = sorted(
        (xxh64(f"default\0{pod.name}\0{each}".encode()), pod.uid, each) for pod in pods for each in ("c1", "c2")
    )
    zones = [
        make_zone(
            0, {"cpu": 4, "memory": "8Gi"}, attributes=[{"name": VECTOR, "value": "npv0v001" + encode(1) + encode(2)}]
        ),
        make_zone(1, {"cpu": 4, "memory": "8Gi"}),
    ]
    report = make_report(zones, attributes={METADATA: "npv0v001::ve=leb89::cc=4::nn=2::bn=1"})
    found = placement_of(report, pods)
    assert found == {(uid, name): number for (_hash, uid, name), number in zip(order, (1, 0, 1, 0), strict=True)}
    assert placement_of(report, pods[:1]) is None, "it speaks of other pods"
    assert placement_of(make_report(zones), pods) is None, "it does not say"
    wrong = make_report(zones, attributes={METADATA: "npv0v001::ve=leb90::cc=4::nn=2::bn=1"})
    assert placement_of(wrong, pods) is None, "in another encoding"
    lax = make_report(zones, policy="none", attributes={METADATA: "npv0v001::ve=leb89::cc=4::nn=2::bn=1"})
    assert placement_of(lax, pods) is None, "zones are not single there"
