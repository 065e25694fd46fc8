"""Pods that never met an API server are judged as it would have stored them, with the claims made that they need."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podium.kube import PersistentVolumeClaim, Pod, PriorityClass, ResourceClaim, Toleration
from podium.kube.admission import AdmissionError, as_admitted, with_claims_made
from podium.kube.claim_status import claims_of_pod
from podium.kube.claims import foreign_claim
from podium.kube.decode import KubeObject, decode_json
from podium.kube.devices import ResourceClaimTemplate
from podium.kube.kinds_around_pods import RuntimeClass
from podium.kube.storage import DEFAULT_CLASS_ANNOTATION
from tests.podium.placement.devices import worlds
from tools.kit.builders import build
from tools.kit.storage import make_claim, make_class

CRITICAL = build(PriorityClass, {"metadata": {"name": "critical"}, "value": 1000, "preemptionPolicy": "Never"})


def admitted(spec: dict[str, Any], *classes: PriorityClass | RuntimeClass, uid: str = "") -> Pod:
    metadata = {"name": "web", "uid": uid, "labels": {"v": "2"}}
    pod = build(Pod, {"metadata": metadata, "spec": spec})
    (result,) = as_admitted([pod], classes)
    assert isinstance(result, Pod)
    return result


def test_requests_follow_from_limits_where_none_are_stated() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    pod = admitted({"containers": [{"resources": resources}], "initContainers": [{"resources": resources}]})
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        assert container.resources.requests == {"cpu": "500m", "memory": "1Gi"}


def test_requests_of_the_pod_follow_from_its_containers_then_from_its_limits() -> None:
    containers = [{"resources": {"requests": {"cpu": "500m"}}}, {"resources": {"requests": {"cpu": "250m"}}}]
    pod = admitted({"containers": containers, "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}})
    assert pod.spec.resources is not None
    assert pod.spec.resources.requests == {"cpu": "750m", "memory": "1Gi"}


@pytest.mark.parametrize(("host_network", "host_port"), [(True, 8080), (False, 0)])
def test_on_the_hosts_network_every_container_port_is_a_host_port(host_network: bool, host_port: int) -> None:
    pod = admitted({"hostNetwork": host_network, "containers": [{"ports": [{"containerPort": 8080}]}]})
    assert pod.spec.containers[0].ports[0].host_port == host_port


def test_the_priority_is_that_of_the_class() -> None:
    pod = admitted({"priorityClassName": "critical"}, CRITICAL)
    assert (pod.spec.priority, pod.spec.preemption_policy) == (1000, "Never")


def test_a_policy_of_the_pods_own_stays() -> None:
    pod = admitted({"priorityClassName": "critical", "preemptionPolicy": "PreemptLowerPriority"}, CRITICAL)
    assert pod.spec.preemption_policy == "PreemptLowerPriority"


def test_without_a_class_the_lowest_default_class_counts() -> None:
    defaults = [
        build(PriorityClass, {"metadata": {"name": f"d{value}"}, "value": value, "globalDefault": True})
        for value in (30, 20)
    ]
    assert admitted({}, CRITICAL, *defaults).spec.priority == 20
    assert admitted({}, CRITICAL).spec.priority is None


def test_the_system_classes_are_known() -> None:
    assert admitted({"priorityClassName": "system-node-critical"}).spec.priority == 2_000_001_000


def test_a_class_that_is_nowhere_is_bad_input() -> None:
    with pytest.raises(AdmissionError, match="pod default/web: PriorityClass gone is not in the files; add what "):
        admitted({"priorityClassName": "gone"})


def test_a_priority_that_is_stated_stays() -> None:
    assert admitted({"priorityClassName": "gone", "priority": 7}).spec.priority == 7


def test_a_pod_from_the_api_server_is_left_alone() -> None:
    amounts = {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    spec = {"priorityClassName": "gone", "containers": [{"resources": amounts}]}
    pod = admitted(spec, uid="1234")
    assert msgspec.to_builtins(pod.spec) == msgspec.to_builtins(build(Pod, {"spec": spec}).spec)


def test_limits_imply_requests_for_every_pod() -> None:
    limits = {"example.com/card": "2", "cpu": "2"}
    pod = admitted({"containers": [{"resources": {"limits": limits, "requests": {"cpu": "1"}}}]}, uid="1234")
    assert pod.spec.containers[0].resources.requests == {"example.com/card": "2", "cpu": "1"}


KATA = build(
    RuntimeClass,
    {
        "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
    },
)


def test_a_runtime_class_adds_overhead_node_selector_and_tolerations() -> None:
    spec = admitted({"runtimeClassName": "kata", "nodeSelector": {"disk": "ssd"}}, KATA).spec
    assert (spec.overhead, spec.node_selector) == ({"cpu": "250m"}, {"disk": "ssd", "kata": "yes"})
    assert spec.tolerations == (Toleration(key="kata", operator="Exists"),)
    assert admitted({"runtimeClassName": "kata"}, KATA, uid="1234").spec.overhead == {}


@pytest.mark.parametrize("spec", [{"nodeSelector": {"kata": "no"}}, {"overhead": {"cpu": "1"}}])
def test_a_pod_that_contradicts_its_runtime_class_is_bad_input(spec: dict[str, Any]) -> None:
    with pytest.raises(AdmissionError, match=r"pod default/web: its .* RuntimeClass kata"):
        admitted({"runtimeClassName": "kata", **spec}, KATA)


def test_label_keys_of_affinity_terms_become_part_of_the_selector() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["v", "gone"], "mismatchLabelKeys": ["v"]}
    weighted = {"weight": 5, "podAffinityTerm": {**term, "mismatchLabelKeys": []}}
    own, others = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
    affinity = admitted(
        {"affinity": {"podAffinity": {own: [term]}, "podAntiAffinity": {others: [weighted]}}}
    ).spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    assert affinity.pod_anti_affinity is not None
    (required,), (preferred,) = affinity.pod_affinity.required, affinity.pod_anti_affinity.preferred
    found = [
        [(each.key, each.operator, each.values) for each in selector.match_expressions]
        for selector in (required.label_selector, preferred.pod_affinity_term.label_selector)
        if selector is not None
    ]
    assert found == [[("v", "In", ("2",)), ("v", "NotIn", ("2",))], [("v", "In", ("2",))]]


def test_claims_without_a_class_get_the_default_one() -> None:
    default = make_class("fast")
    default = replace(default, metadata=replace(default.metadata, annotations={DEFAULT_CLASS_ANNOTATION: "true"}))
    claims = [make_claim("a", storage_class=None), make_claim("b", storage_class=""), make_claim("c", volume="v")]
    names = [
        each.spec.storage_class_name
        for each in as_admitted([*claims, default])[:3]
        if isinstance(each, PersistentVolumeClaim)
    ]
    assert names == ["fast", "", "late"]


def test_a_pod_of_a_manifest_gets_the_claims_of_its_ephemeral_volumes() -> None:
    volumes = [{"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "late"}}}}]
    made = [build(Pod, {"metadata": {"name": "p", "uid": uid}, "spec": {"volumes": volumes}}) for uid in ("", "1234")]
    (claim,) = [each for each in with_claims_made(made) if isinstance(each, PersistentVolumeClaim)]
    assert (claim.key, claim.spec.storage_class_name) == ("default/p-d", "late")
    assert foreign_claim(replace(made[0], metadata=replace(made[0].metadata, uid="default/p")), claim) == ""


def template(name: str = "t", namespace: str = "ns") -> ResourceClaimTemplate:
    spec = worlds.claim()["spec"]
    data = {"metadata": {"name": name, "namespace": namespace}, "spec": {"spec": spec}}
    return decode_json(ResourceClaimTemplate, msgspec.json.encode(data))


def pod(*entries: dict[str, Any], uid: str = "", **status: Any) -> Pod:
    data = {
        "metadata": {"name": "p", "namespace": "ns", "uid": uid},
        "spec": {"containers": [], "resourceClaims": entries},
        "status": status,
    }
    return decode_json(Pod, msgspec.json.encode(data))


def split(objects: list[KubeObject]) -> tuple[Pod, dict[str, ResourceClaim]]:
    (only,) = [each for each in objects if isinstance(each, Pod)]
    return only, {each.key: each for each in objects if isinstance(each, ResourceClaim)}


def test_a_pod_gets_a_claim_of_each_template_that_it_names() -> None:
    asked = pod({"name": "a", "resourceClaimTemplateName": "t"}, {"name": "b", "resourceClaimTemplateName": "t"})
    made, claims = split(with_claims_made([asked], [template()]))
    assert sorted(claims) == ["ns/p-a", "ns/p-b"]
    assert claims["ns/p-a"].spec == template().spec.spec
    assert len({each.metadata.uid for each in claims.values()}) == 2
    owned = replace(made, metadata=replace(made.metadata, uid="ns/p"))
    assert claims_of_pod(owned, claims.get) == [claims["ns/p-a"], claims["ns/p-b"]]


def test_claims_that_exist_already_are_not_made() -> None:
    by_name = {"name": "a", "resourceClaimName": "mine"}
    by_status = {"name": "b", "resourceClaimTemplateName": "t"}
    asked = pod(by_name, by_status, resourceClaimStatuses=[{"name": "b", "resourceClaimName": "p-b-x1"}])
    assert with_claims_made([asked, template()]) == [asked, template()]


def test_a_template_of_another_namespace_is_none() -> None:
    asked = pod({"name": "a", "resourceClaimTemplateName": "t"})
    assert with_claims_made([asked], [template(namespace="other")]) == [asked]
