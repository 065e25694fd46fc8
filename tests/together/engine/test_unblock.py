from podium.config.load import default_config
from podium.engine.explain import explain
from podium.kube.custom_object import ThirdPartyObject
from podium.kube.meta import ObjectMeta
from podium.plugins import load_registry
from tools.kit.builders import make_node, make_pod


def test_amounts_that_a_quota_would_refuse_are_named_together_with_it() -> None:
    registry = load_registry()
    config = default_config(registry, beside=[registry["CapacityScheduling"]])
    quota = ThirdPartyObject(
        metadata=ObjectMeta(name="q", namespace="default"),
        plural_group="elasticquotas.scheduling.x-k8s.io",
        whole={"metadata": {"name": "q", "namespace": "default"}, "spec": {"min": {"cpu": 4}, "max": {"cpu": 4}}},
    )
    there = make_pod("there", requests={"cpu": "3"}, node="n1", spec={"priority": 5})
    objects = (make_node("n1"), quota, there)
    (refused,) = explain(objects, make_pod(requests={"cpu": "3"}), config, registry).remedies
    over = "Pod default/p1 is rejected in PreFilter because ElasticQuota default is more than Max"
    assert refused.changes == ["2 more cpu (asks for 3, 1 of 4 free)", f"the consent of CapacityScheduling ({over})"]
