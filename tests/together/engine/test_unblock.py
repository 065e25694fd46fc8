from typing import Any

from podium.config.load import default_config
from podium.engine.explain import explain
from podium.engine.unblock import Remedy
from podium.kube.custom_object import ThirdPartyObject
from podium.kube.meta import ObjectMeta
from podium.plugins import load_registry
from podium.whatif.fit import fit
from podium.whatif.manifests import Given
from podium.whatif.sandbox import Sandbox
from tools.kit.builders import make_node, make_pod


def quota(most: int, least: int | None = None) -> ThirdPartyObject:
    spec = {"min": {"cpu": most if least is None else least}, "max": {"cpu": most}}
    return ThirdPartyObject(
        metadata=ObjectMeta(name="q", namespace="default"),
        plural_group="elasticquotas.scheduling.x-k8s.io",
        whole={"metadata": {"name": "q", "namespace": "default"}, "spec": spec},
    )


def remedies(*objects: Any) -> list[Remedy]:
    registry = load_registry()
    config = default_config(registry, beside=[registry["CapacityScheduling"]])
    there = make_pod("there", requests={"cpu": "3"}, node="n1", spec={"priority": 5})
    return explain([make_node("n1"), there, *objects], make_pod(requests={"cpu": "3"}), config, registry).remedies


IN_MAX = "2 more cpu in spec.max of ElasticQuota default/q"
IN_MIN = "2 more cpu in spec.min of ElasticQuota default/q"


def test_amounts_that_a_quota_would_refuse_are_named_together_with_its_own() -> None:
    (found,) = remedies(quota(4))
    assert found.changes == [IN_MAX, IN_MIN, "2 more cpu (asks for 3, 1 of 4 free)"]


def test_where_a_node_has_room_the_quota_alone_is_named() -> None:
    assert remedies(quota(4), make_node("n2")) == [Remedy("n2", [IN_MAX, IN_MIN])]
    assert remedies(quota(9, least=4), make_node("n2")) == [Remedy("n2", [IN_MIN])]


def test_what_a_remedy_says_lets_the_pod_come_and_nothing_less_does() -> None:
    def nodes(cpu: int, least: int) -> list[str]:
        return [each.node for each in remedies(quota(cpu, least=least), make_node("n2"))]

    assert nodes(6, 6) == []
    assert nodes(5, 6) == nodes(6, 5) == ["n2"]


def test_the_quota_is_as_it_was_once_remedies_were_tried() -> None:
    registry = load_registry()
    config = default_config(registry, beside=[registry["CapacityScheduling"]])
    there = make_pod("there", requests={"cpu": "3"}, node="n1", spec={"priority": 5})
    asked = make_pod(requests={"cpu": "3"})
    state = Sandbox([make_node("n1"), make_node("n2"), there, quota(4)], config, registry)
    both = [fit(state, (), Given(pods=[asked])).pods[0].after for _ in range(2)]
    assert [each.message for each in both] == [both[0].message] * 2
    assert [each.remedies for each in both] == [[Remedy("n2", [IN_MAX, IN_MIN])]] * 2
