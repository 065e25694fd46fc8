"""What the API writes into pods for the scheduler: label keys in selectors, zone and region of the node."""

import time
from collections.abc import Iterator
from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import NODES, PODS, binding, deployment, node, pod
from tests.podium_cluster.apiserver.contract.session import MERGE, Session

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LABELS = {"app": "a", "version": "2", "tenant": "t"}
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def term(selector: Any, match: list[str] | None = None, mismatch: list[str] | None = None) -> dict[str, Any]:
    given = {"labelSelector": selector, "matchLabelKeys": match, "mismatchLabelKeys": mismatch, "topologyKey": "zone"}
    return {key: value for key, value in given.items() if value is not None}


def spread(selector: Any, match: list[str] | None = None, key: str = "zone") -> dict[str, Any]:
    given = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {**given, **({"labelSelector": selector} if selector is not None else {}), "matchLabelKeys": match}


def specs() -> Iterator[dict[str, Any]]:
    app = {"matchLabels": {"app": "a"}}
    more = {**app, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    for field in ("podAffinity", "podAntiAffinity"):
        yield {"affinity": {field: {REQUIRED: [term(app, ["version"]), term(more, None, ["tenant"]), term({})]}}}
        weighted = {"weight": 5, "podAffinityTerm": term(more, ["version", "none"], ["tenant"])}
        yield {"affinity": {field: {PREFERRED: [weighted]}}}
    yield {"affinity": {"podAffinity": {REQUIRED: [term({}, ["version"])]}}}
    yield {"affinity": {"podAffinity": {REQUIRED: [term(None, ["version"])]}}}
    yield {"affinity": {"podAffinity": {REQUIRED: [term(app, ["app"])]}}}
    yield {"affinity": {"podAffinity": {REQUIRED: [term(app, None, ["app"])]}}}
    yield {"affinity": {"podAffinity": {REQUIRED: [term(app, ["version", "version"])]}}}
    yield {"affinity": {"podAffinity": {REQUIRED: [term(app, ["version"], ["version"])]}}}
    yield {"affinity": {"podAffinity": {REQUIRED: [term(app, ["not a label"])]}}}
    yield {"topologySpreadConstraints": [spread(app, ["version"]), spread(more, ["tenant", "none"], "host")]}
    yield {"topologySpreadConstraints": [spread({}, ["version"])]}
    yield {"topologySpreadConstraints": [spread(None, ["version"])]}
    yield {"topologySpreadConstraints": [spread(app, ["app"])]}
    yield {"topologySpreadConstraints": [spread(None)]}


@contract
def test_label_keys_are_merged_into_selectors(api: Session) -> None:
    codes = []
    for number, spec in enumerate(specs()):
        answer = api.create(PODS, pod(f"p{number}", labels=LABELS, **spec))
        codes.append(answer.code)
        if answer.code == 201:
            api.get(f"{PODS}/p{number}")
            api.patch(f"{PODS}/p{number}", {"metadata": {"labels": {"version": "3"}}}, MERGE)
    assert {201, 422} == set(codes)
    merged = api.get(f"{PODS}/p0").body["spec"]["affinity"]["podAffinity"][REQUIRED]
    assert merged[0]["labelSelector"]["matchExpressions"] == [{"key": "version", "operator": "In", "values": ["2"]}]


@contract
def test_label_keys_of_a_pod_without_labels_say_nothing(api: Session) -> None:
    for number, spec in enumerate(specs()):
        api.create(PODS, pod(f"p{number}", **spec))


@contract
def test_templates_keep_their_label_keys(api: Session) -> None:
    made = deployment()
    made["spec"]["template"]["spec"]["topologySpreadConstraints"] = [spread({"matchLabels": {"app": "a"}}, ["version"])]
    api.create("/apis/apps/v1/namespaces/{ns}/deployments", made)


@contract
def test_pods_get_the_zone_and_region_of_their_node(api: Session) -> None:
    name = f"{api.namespace}-n"
    labels = {ZONE: "z1", REGION: "r1", "kubernetes.io/hostname": name, "other": "x"}
    for each, given in ((name, labels), (f"{name}-zone", {ZONE: "z2"}), (f"{name}-bare", {})):
        made = node(each)
        made["metadata"]["labels"] = given
        assert api.create(NODES, made, note=False).code == 201
    _until_known(api, name)
    _until_known(api, f"{name}-zone")
    for number, (target, own) in enumerate(
        (
            (name, {}),
            (name, {"app": "a", ZONE: "mine"}),
            (f"{name}-zone", {REGION: "mine"}),
            (f"{name}-bare", {}),
            ("no", {}),
        )
    ):
        api.create(PODS, pod(f"p{number}", labels=own), note=False)
        api.create(f"{PODS}/p{number}/binding", binding(f"p{number}", target))
        api.note(api.get(f"{PODS}/p{number}", note=False).body["metadata"].get("labels"))
        api.create(PODS, pod(f"on-node-{number}", labels=own, nodeName=target))
    carrying = binding("carrying", name)
    carrying["metadata"]["labels"] = {"from": "binding", ZONE: "wrong"}
    api.create(PODS, pod("carrying"), note=False)
    api.create(f"{PODS}/carrying/binding", carrying)
    api.note(api.get(f"{PODS}/carrying", note=False).body["metadata"].get("labels"))
    kindless = binding("kindless", name)
    del kindless["target"]["kind"]
    api.create(PODS, pod("kindless"), note=False)
    api.create(f"{PODS}/kindless/binding", kindless)
    api.note(api.get(f"{PODS}/kindless", note=False).body["metadata"].get("labels"))
    bound = api.get(f"{PODS}/p1", note=False).body["metadata"]["labels"]
    assert bound == {"app": "a", ZONE: "z1", REGION: "r1"}


def _until_known(api: Session, name: str) -> None:
    """Wait until pods on the node get its zone: the real server learns of nodes by a watch of its own."""
    deadline = time.monotonic() + 60
    while True:
        seen = api.create(PODS, pod("asked", nodeName=name), query={"dryRun": "All"}, note=False).body
        if ZONE in seen["metadata"].get("labels", {}):
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)
