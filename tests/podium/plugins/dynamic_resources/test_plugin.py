from __future__ import annotations

import msgspec
import pytest

from podium.cluster import NodeInfo, Nodes
from podium.config.durations import decode_hook
from podium.config.field import FieldPath
from podium.framework import SKIP, Code, Cycle, Diagnosis, NodeStatuses, PluginError, Status
from podium.kube import Pod
from podium.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

CLUSTER = make_cluster([make_node("a"), make_node("b")])
PLUGIN = make_plugin(DynamicResources, CLUSTER)
CLAIMING = make_pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}, {"name": "nic"}]})
MISSING = 'could not find ResourceClaim "default/g"'


def begun(cycle: Cycle) -> Cycle:
    assert PLUGIN.pre_filter(cycle) == SKIP
    return cycle


def test_a_pod_whose_claims_are_missing_may_not_enter_the_queue() -> None:
    for status in (PLUGIN.pre_enqueue(CLAIMING), PLUGIN.pre_filter(Cycle(CLAIMING, CLUSTER))):
        assert status is not None
        assert status.code == Code.UNRESOLVABLE
        assert status.message == MISSING


def test_pods_without_claims_are_not_filtered() -> None:
    assert PLUGIN.filter_node(begun(Cycle(make_pod(), CLUSTER)), NodeInfo(CLUSTER, 0)) is None


def test_pods_without_claims_are_scored_0_everywhere_rather_than_skipped() -> None:
    assert "preScore" not in DynamicResources.points
    cycle = begun(Cycle(make_pod(), CLUSTER))
    raw = PLUGIN.score(cycle, Nodes(CLUSTER))
    assert DynamicResources.normalizer is not None
    assert DynamicResources.normalizer.apply(raw) == 0


def test_it_takes_part_at_the_points_kube_schedulers_plugin_does() -> None:
    assert DynamicResources.points == {
        "preEnqueue",
        "preFilter",
        "filter",
        "postFilter",
        "score",
        "reserve",
        "preBind",
        "podGroupPostFilter",
    }


@pytest.mark.parametrize("pod", [make_pod(), CLAIMING], ids=["without claims", "with claims"])
def test_when_no_node_fits_there_are_no_claims_to_give_back(pod: Pod) -> None:
    cycle = Cycle(pod, CLUSTER)
    PLUGIN.pre_filter(cycle)
    result = PLUGIN.post_filter(cycle, Diagnosis(2, NodeStatuses(2)))
    assert result.status == Status.unschedulable()
    assert result.nomination is None


def test_when_pre_filter_never_ran_making_room_fails_with_not_found() -> None:
    result = PLUGIN.post_filter(Cycle(make_pod(), CLUSTER), Diagnosis(2, NodeStatuses(2)))
    assert result.status == Status.error("not found")


def test_a_profile_that_disables_it_at_pre_filter_only_fails_everywhere_else() -> None:
    cycle = Cycle(make_pod(), CLUSTER)
    with pytest.raises(PluginError, match=r"^not found$"):
        PLUGIN.filter_node(cycle, NodeInfo(CLUSTER, 0))
    with pytest.raises(PluginError, match=r"^not found$"):
        PLUGIN.score(cycle, Nodes(CLUSTER))
    assert PLUGIN.reserve(cycle, "a") == Status.error("not found")
    assert PLUGIN.pre_bind_preflight(cycle, "a") == Status.error("not found")


def test_after_the_choice_there_is_nothing_to_do() -> None:
    cycle = begun(Cycle(make_pod(), CLUSTER))
    assert PLUGIN.reserve(cycle, "a") is None
    assert PLUGIN.pre_bind_preflight(cycle, "a") == SKIP


def test_pods_without_claims_are_cached_for_ever_and_others_never() -> None:
    assert PLUGIN.answer_key(make_pod()) == ()
    assert PLUGIN.answer_key(CLAIMING) is None


def arguments(**given: str) -> DynamicResourcesArgs:
    return msgspec.convert(given, DynamicResourcesArgs, dec_hook=decode_hook)


def test_default_arguments() -> None:
    assert (str(arguments().filter_timeout), str(arguments().binding_timeout)) == ("10s", "10m0s")
    assert list(arguments().validate(FieldPath())) == []


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"filterTimeout": "0s", "bindingTimeout": "1s"}, []),
        ({"filterTimeout": "-1s"}, ['args.filterTimeout: Invalid value: "-1s": must be zero or positive']),
        ({"bindingTimeout": "999ms"}, ['args.bindingTimeout: Invalid value: "999ms": must be at least 1 second']),
        (
            {"filterTimeout": "-1ns", "bindingTimeout": "-5m"},
            [
                'args.filterTimeout: Invalid value: "-1ns": must be zero or positive',
                'args.bindingTimeout: Invalid value: "-5m0s": must be at least 1 second',
            ],
        ),
    ],
)
def test_argument_limits(given: dict[str, str], errors: list[str]) -> None:
    assert [str(error) for error in arguments(**given).validate(FieldPath(("args",)))] == errors
