"""Pods wait for the claims that their volumes use."""

from __future__ import annotations

from tools.kit.storage import claim_volume, ephemeral_volume, make_claim, pod_with

from podium.placement.claim_concerns import CLAIM_CONCERNS


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
