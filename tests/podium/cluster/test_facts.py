"""Facts are worked out once per specification, and once per signature where only claims differ."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import facts as facts_module
from podium.cluster.facts import CLAIM_CONCERNS, FactsCache, full_signature
from podium.kube import Pod
from podium.kube.decode import decode_json
from tools.kit.builders import make_pod
from tools.kit.storage import claim_volume, ephemeral_volume, make_claim, pod_using, pod_with


def test_pods_that_differ_only_in_name_and_node_share_their_facts() -> None:
    cache = FactsCache()
    assert cache.of(make_pod("a")) is cache.of(make_pod("b", node="n1"))
    assert cache.of(pod_using("data", name="a")) is cache.of(pod_using("data", name="b", node="n1"))
    assert cache.of(pod_using("data")).claims == ("default/data",)


def test_pods_that_differ_only_in_their_claims_have_one_signature() -> None:
    cache = FactsCache()
    one = cache.of(pod_with(claim_volume("a", "v1"), claim_volume("b", "v2")))
    other = cache.of(pod_with(claim_volume("b", "v1"), claim_volume("b", "v2")))
    assert one.signature == other.signature
    assert one.notes is other.notes
    assert one.claims != other.claims
    assert (one.claims, other.claims) == (("default/a", "default/b"), ("default/b", "default/b"))


@pytest.mark.parametrize(
    "other",
    [
        pod_using("a", namespace="elsewhere"),
        pod_using("a", "a"),
        pod_with(claim_volume("a", "another-volume")),
        pod_with({"name": "v-a", "persistentVolumeClaim": {"claimName": "a", "readOnly": True}}),
        pod_with(ephemeral_volume("v-a")),
        make_pod(labels={"app": "web"}, spec={"volumes": [claim_volume("a")]}),
        make_pod(requests={"cpu": 1}, spec={"volumes": [claim_volume("a")]}),
    ],
)
def test_any_other_difference_makes_another_family(other: Pod) -> None:
    cache = FactsCache()
    assert cache.of(other).signature != cache.of(pod_using("a")).signature


@pytest.mark.parametrize(
    ("other", "equal"),
    [(pod_using("a", name="p2", node="n1"), True), (pod_with(claim_volume("b", "v-a")), False)],
)
def test_kinds_tell_claims_apart(other: Pod, equal: bool) -> None:
    assert (full_signature(other) == full_signature(pod_using("a"))) is equal


def test_resources_already_granted_are_told_apart() -> None:
    granted: dict[str, Any] = {
        "containerStatuses": [
            {"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}}
        ]
    }
    cache = FactsCache()
    small, resized = make_pod(requests={"cpu": "1"}), make_pod(requests={"cpu": "1"}, status=granted)
    assert full_signature(small) != full_signature(resized)
    assert cache.of(small).counted.tolist() != cache.of(resized).counted.tolist()


def test_the_oldest_facts_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "MOST_FACTS", 2)
    cache = FactsCache()
    pods = [pod_with(claim_volume(name, "v")) for name in ("a", "b", "c")]
    before = [cache.of(pod) for pod in pods]
    assert [cache.of(pod) is known for pod, known in zip(pods[1:], before[1:], strict=True)] == [True, True]
    again = cache.of(pods[0])
    assert again is not before[0]
    assert again.signature == before[0].signature


def test_amounts_beyond_64_bits_have_a_signature_too() -> None:
    container = b'{"name":"c","resources":{"requests":{"memory":-9223372036854775809}}}'
    pod = decode_json(Pod, b'{"metadata":{"name":"a"},"spec":{"containers":[' + container + b"]}}")
    assert full_signature(pod) != full_signature(make_pod("a"))


def test_a_pod_waits_for_the_claims_it_names_in_its_own_namespace() -> None:
    pod = pod_with(claim_volume("data"), claim_volume("logs"), namespace="blue")
    assert CLAIM_CONCERNS.of_pod(pod) == ("blue/data", "blue/logs")
    assert CLAIM_CONCERNS.of_pod(pod_with()) == ()


def test_a_pod_with_an_ephemeral_volume_waits_for_any_claim() -> None:
    """Its claim is named after the pod, while pods that differ in name only are filed together."""
    assert CLAIM_CONCERNS.of_pod(pod_with(claim_volume("data"), ephemeral_volume("x"))) is None


def test_a_change_of_a_claim_is_about_that_claim() -> None:
    claim = make_claim("data", namespace="blue")
    for before, after in ((None, claim), (claim, claim), (claim, None)):
        assert CLAIM_CONCERNS.of_event(before, after) == {"blue/data"}
