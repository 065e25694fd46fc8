"""A workload is created whole: kinds that nothing acts on are stored and counted, unknown ones are named together."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from podium_cluster.up import UpError
from podium_cluster.up.creation import create
from podium_cluster.up.manifests import Manifest, read_workload

CHART = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
    - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: web}, spec: {controller: example.com/c}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: web}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: web}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: web}, rules: []}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}
"""


def new_api() -> EmbeddedApi:
    return EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1))


def ask(api: EmbeddedApi, method: str, path: str, body: bytes = b"") -> ApiResponse:
    answer = RequestHandler(api).handle(ApiRequest(method, path, body, "application/json"))
    assert isinstance(answer, ApiResponse)
    return answer


def test_kinds_that_nothing_acts_on_are_stored_and_counted(tmp_path: Path) -> None:
    (tmp_path / "chart.yaml").write_text(CHART)
    api = new_api()
    created = create(api, read_workload(tmp_path))
    inert = ("Ingress", "IngressClass", "NetworkPolicy", "HorizontalPodAutoscaler", "CronJob")
    webhooks = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    assert created == (11, Counter({*inert, *webhooks}))
    again = create(api, read_workload(tmp_path))
    assert again == (0, created.inert), "they are there already"
    for kind in (each for each in api.kinds if each.inert):
        for obj in api.list(kind):
            path = kind.path(obj["metadata"].get("namespace"), obj["metadata"]["name"])
            assert ask(api, "GET", path).status == 200
            assert ask(api, "DELETE", path).status == 200
            assert ask(api, "GET", path).status == 404


def test_who_creates_such_an_object_is_warned() -> None:
    api = new_api()
    body = b'{"metadata": {"name": "a"}, "spec": {"podSelector": {}}}'
    answer = ask(api, "POST", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", body)
    assert answer.status == 201
    assert answer.warnings == ("NetworkPolicy: stored, but nothing in this cluster acts on it",)


def test_every_unknown_kind_is_named_in_one_sentence_before_anything_is_created() -> None:
    def manifest(api_version: str, kind: str, file: str, **fields: Any) -> Manifest:
        return Manifest(Path(file), {"apiVersion": api_version, "kind": kind, "metadata": {"name": "app"}, **fields})

    names = {"plural": "things", "kind": "Thing"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    definition = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd.yaml", spec=spec)
    definition.obj["metadata"]["name"] = "things.example.com"
    fine = [manifest("v1", "ConfigMap", "a.yaml"), definition, manifest("example.com/v1", "Thing", "b.yaml")]
    unknown = [
        manifest("monitoring.coreos.com/v1", "ServiceMonitor", "m/monitor.yaml"),
        manifest("autoscaling/v1", "HorizontalPodAutoscaler", "m/hpa.yaml"),
    ]
    api = new_api()
    revision = api.store.revision
    with pytest.raises(UpError) as refusal:
        create(api, [*fine, *unknown])
    assert str(refusal.value) == (
        "--workload: ServiceMonitor app (monitoring.coreos.com/v1, in m/monitor.yaml), HorizontalPodAutoscaler app "
        "(autoscaling/v1, served as autoscaling/v2, in m/hpa.yaml): this API does not serve these kinds; add the "
        "CustomResourceDefinition to the workload, or leave the object out"
    )
    assert api.store.revision == revision
    assert create(api, fine).objects == 3


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("log", "podium up runs no containers, so it has no logs; kubectl describe shows its events"),
        ("exec?command=sh", "podium up runs no containers, so no command can run in it"),
        ("attach", "podium up runs no containers, so there is nothing to attach to"),
        ("portforward", "podium up runs no containers, so it has no port to forward to"),
    ],
)
def test_what_needs_containers_says_that_there_are_none(part: str, sentence: str) -> None:
    api = new_api()
    pod = b'{"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}'
    assert ask(api, "POST", "/api/v1/namespaces/default/pods", pod).status == 201
    for method in ("GET", "POST"):
        answer = ask(api, method, f"/api/v1/namespaces/default/pods/web/{part}")
        assert answer.status == 501
        assert f'pod \\"web\\": {sentence}'.encode() in answer.body
        assert ask(api, method, f"/api/v1/namespaces/default/pods/none/{part}").status == 404
