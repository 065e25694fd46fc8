"""Whatever the embedded API takes, though kube-apiserver may refuse it, is served like anything else and settles."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from typing import Any

import pytest

from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from podium_cluster.apiserver.store.watcher import Watcher, WatchRequest
from tests.podium_cluster.apiserver.contract.test_custom import definition
from tests.podium_cluster.apiserver.contract.test_random_objects import OBJECTS as RANDOM
from tests.podium_cluster.apiserver.contract.test_random_objects import changed
from tests.podium_cluster.apiserver.embedded import (
    Embedded,
    daemon_set,
    deployment,
    in_embedded_cluster,
    job,
    replica_set,
    stateful_set,
)
from tools.kit.effort import examples
from tools.testbed.apiclient import ApiError
from tools.testbed.cluster import ControlPlane

Object = dict[str, Any]
SETTLED = 60.0


def named(api_version: str, kind: str, **fields: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}


EVENT = named("v1", "Event", involvedObject={"kind": "Pod", "namespace": "default", "name": "p"}, type="Normal")
MODERN = named("events.k8s.io/v1", "Event", regarding={"kind": "Pod", "namespace": "default", "name": "p"})
SECRET = named("v1", "Secret", type="Opaque", data={"a": "eA=="})
CONFIG_MAP = named("v1", "ConfigMap", data={"a": "x"}, binaryData={"b": "eA=="})
LEASE = named("coordination.k8s.io/v1", "Lease", spec={"leaseDurationSeconds": 5, "leaseTransitions": 1})
SIZE: Object = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "message": "m"}]}
SCHEMA: Object = {"type": "object", "properties": {"size": SIZE}}


def custom(**spec: Any) -> Object:
    made = definition("example.com", **spec)
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = SCHEMA
    return made


def with_rule(**rule: Any) -> Object:
    made = definition("example.com")
    text = {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [{"rule": "true", **rule}]}
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["l"] = text
    return made


def small(workload: Object) -> Object:
    """Its pods ask for nothing: what stands in for a scheduler does not look, and a node refuses what is too large."""
    del workload["spec"]["template"]["spec"]["containers"][0]["resources"]
    return workload


RANDOM_OBJECTS: list[Object] = [
    *(obj for _, obj in RANDOM),
    *map(small, (deployment(), replica_set(), stateful_set(), daemon_set(), job(completions=2, manualSelector=True))),
    *(EVENT, SECRET, CONFIG_MAP, LEASE, custom()),
]
TAKEN: list[Object] = [
    deployment(minReadySeconds=-1),
    deployment(minReadySeconds=5, progressDeadlineSeconds=5),
    deployment(revisionHistoryLimit=-1),
    deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    deployment(strategy={"rollingUpdate": {"maxUnavailable": "120%"}}),
    replica_set(minReadySeconds=-1),
    stateful_set(minReadySeconds=-1),
    daemon_set(minReadySeconds=-1),
    daemon_set(revisionHistoryLimit=-1),
    daemon_set(updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}),
    daemon_set(updateStrategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    job(backoffLimit=-1, manualSelector=True),
    job(activeDeadlineSeconds=-1, manualSelector=True),
    job(ttlSecondsAfterFinished=-1, manualSelector=True),
    job(maxFailedIndexes=1, manualSelector=True),
    job(backoffLimitPerIndex=1, manualSelector=True),
    {**CONFIG_MAP, "data": {"bad key": "x"}},
    {**CONFIG_MAP, "data": {"b": "x"}},
    {**CONFIG_MAP, "data": {"a": "x" * 1_100_000}},
    {**SECRET, "type": "kubernetes.io/tls"},
    {**LEASE, "spec": {"leaseDurationSeconds": 0}},
    {**LEASE, "spec": {"leaseTransitions": -1}},
    {**EVENT, "involvedObject": {"kind": "Pod", "namespace": "other", "name": "p"}},
    {**EVENT, "eventTime": "2020-01-01T00:00:00.000000Z"},
    {**MODERN, "type": "Odd"},
    custom(names={"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "Thing"}),
    custom(names={"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["A"]}),
    custom(preserveUnknownFields=True),
    with_rule(message="a\nb"),
    with_rule(reason="Odd"),
    with_rule(fieldPath=".nothing"),
    with_rule(optionalOldSelf=True),
    with_rule(rule="self.all(a, self.all(b, a != b))"),
]
"""What kube-apiserver refuses, for each refusal that the embedded API does without."""


class Client:
    """Sends requests to a cluster's API as bytes, so that fields and defaults are taken as for anyone."""

    def __init__(self, cluster: Embedded) -> None:
        self.cluster = cluster
        self._handler = RequestHandler(cluster.api)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        raw = b"" if body is None else json.dumps(body).encode()
        found = self._handler.handle(ApiRequest(method, path, raw, "application/json"))
        assert isinstance(found, ApiResponse)
        return found.status, json.loads(found.body)

    def watched(self, path: str) -> list[Object]:
        request = self._handler.handle(ApiRequest("GET", f"{path}?watch=true"))
        assert isinstance(request, WatchRequest)
        watcher, lines = Watcher(self.cluster.api.store, request), b""
        while data := watcher.events():
            lines += data
        watcher.close()
        return [json.loads(line)["object"] for line in lines.splitlines()]


async def served_and_settled(client: Client, obj: Object) -> bool:
    """Whether an object is taken; then it is stored, listed, watched and deleted, and nobody writes on and on."""
    cluster = client.cluster
    kind = cluster.api.kinds.by_kind(obj["apiVersion"], obj["kind"])
    assert kind is not None
    path = kind.path("default")
    code, made = client.call("POST", path, obj)
    assert code in (201, 400, 403, 422), made
    if code != 201:
        return False
    name = made["metadata"]["name"]
    own = kind.path("default", name)
    assert client.call("GET", own)[1]["metadata"]["uid"] == made["metadata"]["uid"]
    for found in (client.call("GET", path)[1]["items"], client.watched(path)):
        assert name in [each["metadata"]["name"] for each in found]
    await rest(cluster)
    if client.call("GET", own)[0] == 200:  # a Job may be gone
        assert client.call("DELETE", own, {"propagationPolicy": "Background"})[0] in (200, 202)
    await rest(cluster)
    assert client.call("GET", own)[0] == 404
    return True


async def rest(cluster: Embedded) -> None:
    """Nothing but heartbeats is written once there was time to settle."""
    await asyncio.sleep(SETTLED)
    before = cluster.api.store.revision
    await asyncio.sleep(30)
    assert cluster.api.store.revision - before <= 3 * len(cluster.kubelets.machines) + 5


def taken(objects: list[Object], caplog: pytest.LogCaptureFixture) -> list[bool]:
    found: list[bool] = []

    async def story(cluster: Embedded) -> None:
        client = Client(cluster)
        found.extend([await served_and_settled(client, obj) for obj in objects])

    with caplog.at_level(logging.ERROR):
        in_embedded_cluster(story, nodes=2)
    assert caplog.records == []
    return found


@pytest.mark.parametrize("obj", TAKEN, ids=lambda obj: f"{obj['kind']} {str(obj)[-40:]}")
def test_what_goes_without_a_check_is_served_and_settles(obj: Object, caplog: pytest.LogCaptureFixture) -> None:
    assert taken([obj], caplog) == [True]


def test_the_real_server_refuses_what_goes_without_a_check(control_plane: ControlPlane) -> None:
    kinds = {"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"}
    for obj in TAKEN:
        version, plural = obj["apiVersion"], f"{obj['kind'].lower()}s"
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        path = kinds.get(obj["kind"], f"{root}/namespaces/default/{plural}")
        with pytest.raises(ApiError) as refusal:
            control_plane.client.request("POST", path, obj, query={"dryRun": "All"})
        assert refusal.value.code == 422, obj


@pytest.mark.parametrize("obj", RANDOM_OBJECTS, ids=lambda obj: obj["kind"])
def test_random_objects_are_refused_or_served_and_settle(obj: Object, caplog: pytest.LogCaptureFixture) -> None:
    rngs = [random.Random(f"{obj['kind']} {seed}") for seed in range(examples(60))]
    assert any(taken([changed(rng, obj) for rng in rngs], caplog))
