"""The volumes promised to nodes equal those worked out anew, whatever is nominated and whatever claims lead to."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.framework import Handle
from podium.kube import Pod
from podium.plugins.node_volume_limits.promised import PromisedVolumes
from tools.kit.builders import make_cluster, make_handle
from tools.kit.effort import examples
from tools.kit.storage import claim_volume, ephemeral_volume, make_claim, make_class, make_volume, owned_by, pod_with

PODS = [
    pod_with(claim_volume("a", "v"), name="one"),
    pod_with(claim_volume("a", "v"), claim_volume("b", "w"), name="two"),
    pod_with(ephemeral_volume("own"), claim_volume("b", "w"), name="three"),
    pod_with({"name": "disk", "awsElasticBlockStore": {"volumeID": "vol-1"}}, name="four"),
]
VOLUMES = ["d/handle-v1", "e/handle-v1", "d/handle-v2", "ebs.csi.aws.com/vol-1"] + [
    f"{driver}/podium-to-be-made-default/{claim}" for driver in "de" for claim in ("a", "b", "three-own")
]

nominations = st.tuples(st.just("nominate"), st.sampled_from(PODS), st.sampled_from(["n1", "n2", ""]))
claims = st.tuples(
    st.just("set"),
    st.builds(
        lambda name, volume: make_claim(name, volume=volume), st.sampled_from("ab"), st.sampled_from(["", "v1", "v2"])
    ),
    st.booleans(),
)
own_claims = st.tuples(
    st.just("set"),
    st.sampled_from([make_claim("three-own"), make_claim("three-own", metadata=owned_by(PODS[2]))]),
    st.booleans(),
)
volumes = st.tuples(
    st.just("set"),
    st.builds(
        lambda name, driver: make_volume(name, driver=driver), st.sampled_from(["v1", "v2"]), st.sampled_from("de")
    ),
    st.booleans(),
)
classes = st.tuples(
    st.just("set"), st.builds(lambda by: make_class(provisioner=by), st.sampled_from("de")), st.booleans()
)
STEPS = st.lists(st.one_of(nominations, nominations, claims, own_claims, volumes, classes), max_size=25)


def apply(handle: Handle, what: str, thing: Any, detail: Any) -> None:
    if what == "nominate":
        assert isinstance(thing, Pod)
        handle.nominator.nominate(thing, detail)
        return
    store = handle.cluster.objects.store_of(type(thing))
    assert store is not None
    if detail:
        store.set(thing.key, thing)
    else:
        store.discard(thing.key)


@settings(max_examples=examples(200))
@given(STEPS)
def test_following_changes_equals_looking_anew(steps: list[tuple[str, Any, Any]]) -> None:
    handle = make_handle(make_cluster([], objects=[make_class(provisioner="d")]))
    promised = PromisedVolumes(handle)
    for what, thing, detail in steps:
        apply(handle, what, thing, detail)
        known, anew = promised.refreshed(), PromisedVolumes(handle).refreshed()
        assert [volume in known for volume in VOLUMES] == [volume in anew for volume in VOLUMES]


def test_a_journal_that_was_cut_means_looking_at_every_node() -> None:
    handle = make_handle(make_cluster([], objects=[make_claim("a", volume="v1"), make_volume("v1", driver="d")]))
    promised = PromisedVolumes(handle)
    handle.nominator.nominate(PODS[0], "n1")
    assert "d/handle-v1" in promised.refreshed()
    handle.nominator.remove(PODS[0].uid)
    for _ in range(60_000):
        handle.nominator.changes.append("n9")
        handle.nominator.changes.append("n8")
    assert "d/handle-v1" not in promised.refreshed()
