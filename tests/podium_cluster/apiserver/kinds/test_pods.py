"""What the API writes into new and bound pods; the contract tests compare all of it with the real server."""

import random
from typing import Any

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import NODE, POD
from podium_cluster.apiserver.writes.binding import bind

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
SELECTOR = {"matchLabels": {"app": "a"}}


def new_api() -> EmbeddedApi:
    api = EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1))
    labels = {ZONE: "z", REGION: "r", "other": "x"}
    api.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}})
    return api


def pod(labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "default", "labels": labels}
    containers = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def test_match_and_mismatch_label_keys_become_expressions() -> None:
    keys = {"matchLabelKeys": ["version", "absent"], "mismatchLabelKeys": ["tenant"], "topologyKey": "zone"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": SELECTOR, **keys}]}
    labels = {"app": "a", "version": "2", "tenant": "t"}
    created = new_api().create(POD, pod(labels, affinity={"podAntiAffinity": terms}))
    (term,) = created["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchExpressions"] == [
        {"key": "version", "operator": "In", "values": ["2"]},
        {"key": "tenant", "operator": "NotIn", "values": ["t"]},
    ]


def test_match_label_keys_of_spreading_become_expressions() -> None:
    spreading = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    constraints = [{**spreading, "matchLabelKeys": ["version"]}]
    created = new_api().create(POD, pod({"version": "2"}, topologySpreadConstraints=constraints))
    (constraint,) = created["spec"]["topologySpreadConstraints"]
    expected = [{"key": "version", "operator": "In", "values": ["2"]}]
    assert constraint["labelSelector"]["matchExpressions"] == expected


def test_a_bound_pod_gets_the_zone_and_region_of_its_node() -> None:
    api = new_api()
    api.create(POD, pod({"app": "a", ZONE: "mine"}))
    bind(api.context, "default", "p", {"target": {"kind": "Node", "name": "n"}})
    assert api.get(POD, "default", "p")["metadata"]["labels"] == {"app": "a", ZONE: "z", REGION: "r"}


def test_a_pod_that_is_created_on_a_node_gets_its_zone_and_region() -> None:
    created = new_api().create(POD, pod({"app": "a"}, nodeName="n"))
    assert created["metadata"]["labels"] == {"app": "a", ZONE: "z", REGION: "r"}


def test_v42_pod_level_requests_are_filled_from_those_of_the_containers() -> None:
    one = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}}}
    created = new_api().create(POD, pod({}, containers=[one], resources={"requests": {"cpu": "1"}}))
    assert created["spec"]["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}}
