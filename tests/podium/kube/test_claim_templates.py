from typing import Any

import msgspec
from msgspec.structs import replace

from podium.kube import Pod, ResourceClaim
from podium.kube.claim_status import claims_of_pod
from podium.kube.claim_templates import with_claims_made
from podium.kube.decode import KubeObject, decode_json
from podium.kube.devices import ResourceClaimTemplate
from tests.podium.placement.devices import worlds


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
