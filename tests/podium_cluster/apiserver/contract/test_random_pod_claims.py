"""Pods with resource claims in which one thing is changed at random, and what their status says about claims."""

import random
from typing import Any, Final

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import DEPLOYMENTS, PODS
from tests.podium_cluster.apiserver.contract.session import Object, Session
from tests.podium_cluster.apiserver.contract.test_random_objects import changed, note

CLAIMS: Final[Object] = {
    "of_pod": [{"name": "a", "resourceClaimName": "c"}, {"name": "b", "resourceClaimTemplateName": "t"}],
    "of_container": [{"name": "a"}, {"name": "b", "request": "r"}],
    "of_init_container": [{"name": "a", "request": "x"}],
}
STATUS: Final[Object] = {
    "resourceClaimStatuses": [{"name": "a", "resourceClaimName": "c"}, {"name": "b"}],
    "extendedResourceClaimStatus": {
        "resourceClaimName": "x",
        "requestMappings": [{"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}],
    },
}


def spec_with(claims: Object) -> Object:
    amounts = {"example.com/gpu": "1"}
    container = {"claims": claims.get("of_container"), "requests": amounts, "limits": amounts}
    return {
        "resourceClaims": claims.get("of_pod"),
        "containers": [{"name": "c", "image": "i", "resources": container}],
        "initContainers": [{"name": "i", "image": "i", "resources": {"claims": claims.get("of_init_container")}}],
    }


def pod_with(claims: Object, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec_with(claims), **more}


def deployment_with(claims: Object) -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec_with(claims)}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


@contract
def test_pods_with_claims(api: Session) -> None:
    for seed in range(160):
        claims = changed(random.Random(seed), CLAIMS)
        path, obj = (PODS, pod_with(claims)) if seed % 4 else (DEPLOYMENTS, deployment_with(claims))
        note(api, seed, api.create(path, obj, query={"dryRun": "All"}, note=False))


@contract
def test_new_states_of_pods_with_claims(api: Session) -> None:
    assert api.create(PODS, pod_with(CLAIMS), note=False).code == 201
    for seed in range(1000, 1080):
        obj = pod_with(changed(random.Random(seed), CLAIMS))
        note(api, seed, api.put(f"{PODS}/p", obj, query={"dryRun": "All"}, note=False))


@contract
def test_statuses_about_claims(api: Session) -> None:
    assert api.create(PODS, pod_with(CLAIMS), note=False).code == 201
    for seed in range(2000, 2160):
        obj = pod_with(CLAIMS, **changed(random.Random(seed), {"status": STATUS}))
        note(api, seed, api.put(f"{PODS}/p/status", obj, query={"dryRun": "All"}, note=False))
