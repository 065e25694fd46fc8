"""Pods: binding, graceful deletion, eviction under a budget, status, and what may change in one."""

from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import NODES, PODS, binding, node, pod
from tests.podium_cluster.apiserver.contract.session import STRATEGIC, Session

BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"


def placed(api: Session, name: str = "p", **spec: Any) -> None:
    """A pod on a node, with nothing noted."""
    api.create(PODS, pod(name, labels={"app": "a"}, **spec), note=False)
    assert api.create(f"{PODS}/{name}/binding", binding(name, "n"), note=False).code == 201


def budget(name: str = "b", **spec: Any) -> dict[str, Any]:
    filled = {"selector": {"matchLabels": {"app": "a"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": filled}


def eviction(name: str = "p", **options: Any) -> dict[str, Any]:
    found = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return {**found, **({"deleteOptions": options} if options else {})}


@contract
def test_a_pod_is_bound_once(api: Session) -> None:
    api.create(PODS, pod(), note=False)
    bound = api.create(f"{PODS}/p/binding", binding("p", "n"))
    assert bound.code == 201
    found = api.get(f"{PODS}/p").body
    assert found["spec"]["nodeName"] == "n"
    assert found["status"]["conditions"][0]["type"] == "PodScheduled"
    again = api.create(f"{PODS}/p/binding", binding("p", "other"))
    assert (again.code, again.reason) == (409, "Conflict")


@contract
def test_bindings_that_cannot_be(api: Session) -> None:
    api.create(PODS, pod(), note=False)
    other = "11111111-2222-4333-8444-555555555555"
    api.create(f"{PODS}/none/binding", binding("none", "n"))
    api.create(f"{PODS}/p/binding", binding("p", "n", uid=other))
    api.create(f"{PODS}/p/binding", binding("other", "n"))
    api.create(f"{PODS}/p/binding", binding("p", ""))
    wrong = binding("p", "n")
    wrong["target"]["kind"] = "Pod"
    api.create(f"{PODS}/p/binding", wrong)
    api.create(f"{PODS}/p/binding", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    api.create(f"{PODS}/p/binding", {**binding("p", "n"), "target": "n"})
    api.create(f"{PODS}/p/binding", {**binding("p", "n"), "metadata": {"name": {}}})
    api.create(f"{PODS}/p/eviction", {**eviction(), "deleteOptions": {"gracePeriodSeconds": "x"}})
    api.create(f"{PODS}/p/eviction", {**eviction(), "metadata": "p"})
    gated = pod("gated", schedulingGates=[{"name": "example.com/g"}])
    api.create(PODS, gated)
    api.create(f"{PODS}/gated/binding", binding("gated", "n"))
    api.call("GET", f"{PODS}/p/binding")


@contract
def test_a_pod_that_is_being_deleted_cannot_be_bound(api: Session) -> None:
    given = pod()
    given["metadata"]["finalizers"] = ["example.com/f"]
    api.create(PODS, given, note=False)
    api.delete(f"{PODS}/p", note=False)
    api.create(f"{PODS}/p/binding", binding("p", "n"))


@contract
def test_bindings_carry_annotations_and_labels_over(api: Session) -> None:
    api.create(PODS, pod(), note=False)
    given = binding("p", "n")
    given["metadata"] |= {"annotations": {"a": "1"}, "labels": {"b": "2"}}
    api.create(f"{PODS}/p/binding", given)
    api.get(f"{PODS}/p")


@contract
def test_bindings_can_be_posted_to_their_own_collection(api: Session) -> None:
    api.create(PODS, pod(), note=False)
    assert api.create("/api/v1/namespaces/{ns}/bindings", binding("p", "n")).code == 201
    assert api.get(f"{PODS}/p", note=False).body["spec"]["nodeName"] == "n"


@contract
def test_a_pod_without_a_node_is_deleted_at_once(api: Session) -> None:
    api.create(PODS, pod(), note=False)
    assert api.delete(f"{PODS}/p").code == 200
    assert api.get(f"{PODS}/p").code == 404


@contract
def test_a_pod_on_a_node_is_given_time(api: Session) -> None:
    placed(api)
    marked = api.delete(f"{PODS}/p").body
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    api.delete(f"{PODS}/p")
    shorter = api.delete(f"{PODS}/p", {"gracePeriodSeconds": 5}).body
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    api.delete(f"{PODS}/p", {"gracePeriodSeconds": 20})
    api.get(f"{PODS}/p")
    assert api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0}).code == 200
    assert api.get(f"{PODS}/p").code == 404


@contract
def test_the_grace_period_may_be_asked_for_in_the_url(api: Session) -> None:
    placed(api)
    assert api.delete(f"{PODS}/p", query={"gracePeriodSeconds": "0"}).code == 200
    assert api.get(f"{PODS}/p").code == 404


@contract
def test_an_ended_pod_is_deleted_at_once(api: Session) -> None:
    placed(api)
    api.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}}, note=False)
    api.delete(f"{PODS}/p")
    assert api.get(f"{PODS}/p").code == 404


@contract
def test_a_pods_status_is_written_apart(api: Session) -> None:
    api.create(PODS, pod())
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}
    patch = {"status": {"conditions": [condition], "nominatedNodeName": "n"}}
    api.patch(f"{PODS}/p/status", patch, STRATEGIC)
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"}}
    found = api.patch(f"{PODS}/p/status", running, STRATEGIC)
    assert len(found.body["status"]["conditions"]) == 2
    api.patch(f"{PODS}/p/status", {"spec": {"nodeName": "n"}, "metadata": {"labels": {"a": "b"}}}, STRATEGIC)


@contract
def test_what_may_change_in_a_pod(api: Session) -> None:
    api.create(PODS, pod(tolerations=[{"key": "a", "operator": "Exists"}]), note=False)
    image = {"spec": {"containers": [{"name": "c", "image": "new"}]}}
    assert api.patch(f"{PODS}/p", image, STRATEGIC).code == 200
    added = {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]}}
    assert api.patch(f"{PODS}/p", added).code == 200
    api.patch(f"{PODS}/p", {"spec": {"tolerations": []}}, note=False)
    assert api.patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 30}}).code == 200
    api.patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 40}})
    api.patch(f"{PODS}/p", {"spec": {"containers": [{"name": "d", "image": "x"}]}}, STRATEGIC)
    refused = api.patch(f"{PODS}/p", {"spec": {"nodeName": "n"}}, note=False)
    assert (refused.code, refused.reason) == (422, "Invalid")
    api.note(refused.message.split("\n")[0])
    refused = api.patch(f"{PODS}/p", {"spec": {"priorityClassName": "system-node-critical"}}, note=False)
    api.note(refused.code, refused.message.split("\n")[0])


@contract
def test_gates_can_only_be_taken_away(api: Session) -> None:
    api.create(PODS, pod(schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}]))
    api.patch(f"{PODS}/p", {"spec": {"schedulingGates": [{"name": "example.com/c"}]}})
    api.patch(f"{PODS}/p", {"spec": {"nodeSelector": {"a": "b"}}})
    api.patch(f"{PODS}/p", {"spec": {"nodeSelector": {"a": "c"}}})
    assert api.patch(f"{PODS}/p", {"spec": {"schedulingGates": [{"name": "example.com/b"}]}}).code == 200
    assert api.patch(f"{PODS}/p", {"spec": {"schedulingGates": None}}).code == 200
    api.patch(f"{PODS}/p", {"spec": {"schedulingGates": [{"name": "example.com/b"}]}})


@contract
def test_the_node_affinity_of_a_gated_pod_may_only_become_narrower(api: Session) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"

    def chosen(*terms: list[str]) -> dict[str, Any]:
        wanted = [{"matchExpressions": [{"key": key, "operator": "Exists"} for key in keys]} for keys in terms]
        return {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": wanted}}}}

    api.create(PODS, pod(schedulingGates=[{"name": "example.com/g"}], **chosen(["a"])), note=False)
    assert api.patch(f"{PODS}/p", {"spec": chosen(["a", "b"])}).code == 200
    assert api.patch(f"{PODS}/p", {"spec": chosen(["b"])}).code == 422
    assert api.patch(f"{PODS}/p", {"spec": chosen(["a", "b"], ["c"])}).code == 422


@contract
def test_the_qos_class_follows_requests_and_limits(api: Session) -> None:
    for at, resources in enumerate(
        (
            {},
            {"requests": {"cpu": "1"}},
            {"limits": {"cpu": "1", "memory": "1Gi"}},
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        )
    ):
        given = pod(f"p{at}")
        given["spec"]["containers"][0]["resources"] = resources
        api.note(api.create(PODS, given).body["status"]["qosClass"])


@contract
def test_priorities_come_from_classes(api: Session) -> None:
    name = api.namespace
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    given = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7}
    api.create(classes, {**given, "preemptionPolicy": "Never"}, note=False)
    assert api.create(PODS, pod("a", priorityClassName=name)).body["spec"]["priority"] == 7
    api.create(PODS, pod("b", priorityClassName="none"))
    api.create(PODS, pod("c", priority=5))
    api.create(PODS, pod("d", priorityClassName="system-node-critical"))
    api.delete(f"{classes}/{name}", note=False)


@contract
def test_a_pod_without_a_budget_is_evicted(api: Session) -> None:
    placed(api)
    assert api.create(f"{PODS}/p/eviction", eviction()).code == 201
    assert "deletionTimestamp" in api.get(f"{PODS}/p").body["metadata"]
    api.create(f"{PODS}/none/eviction", eviction("none"))


@contract
def test_a_budget_allows_so_many_evictions_and_no_more(api: Session) -> None:
    for name in ("p", "q"):
        placed(api, name)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.patch(f"{PODS}/{name}/status", {"status": ready}, note=False)
    api.create(BUDGETS, budget(minAvailable=1), note=False)
    refused = api.create(f"{PODS}/p/eviction", eviction())
    assert (refused.code, refused.reason) == (429, "TooManyRequests")
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
    }
    api.patch(f"{BUDGETS}/b/status", {"status": status}, note=False)
    assert api.create(f"{PODS}/p/eviction", eviction()).code == 201
    left = api.get(f"{BUDGETS}/b").body["status"]
    assert left["disruptionsAllowed"] == 0
    assert api.create(f"{PODS}/q/eviction", eviction("q")).code == 429


@contract
def test_pending_pods_are_evicted_whatever_the_budget_says(api: Session) -> None:
    api.create(PODS, pod(labels={"app": "a"}), note=False)
    api.create(BUDGETS, budget(minAvailable=1), note=False)
    assert api.create(f"{PODS}/p/eviction", eviction()).code == 201
    assert api.get(f"{PODS}/p").code == 404


@contract
def test_two_budgets_for_one_pod_are_an_error(api: Session) -> None:
    placed(api)
    api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}}, note=False)
    for name in ("a", "b"):
        api.create(BUDGETS, budget(name, minAvailable=0), note=False)
    api.create(f"{PODS}/p/eviction", eviction())


@contract
def test_an_eviction_can_be_tried(api: Session) -> None:
    placed(api)
    api.create(f"{PODS}/p/eviction", eviction(dryRun=["All"]))
    assert "deletionTimestamp" not in api.get(f"{PODS}/p", note=False).body["metadata"]


@contract
def test_nodes_are_tainted_cordoned_and_given_a_status(api: Session) -> None:
    name = f"{api.namespace}-n"
    api.create(NODES, node(name))
    taints = [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    api.patch(f"{NODES}/{name}", {"spec": {"taints": taints, "unschedulable": True}}, STRATEGIC)
    status = {"allocatable": {"cpu": "2", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}
    api.patch(f"{NODES}/{name}/status", {"status": status}, STRATEGIC)
    api.patch(f"{NODES}/{name}", {"status": {"allocatable": {"cpu": "9"}}})
    api.delete(f"{NODES}/{name}")


@contract
def test_services_get_an_address_and_keep_it(api: Session) -> None:
    services = "/api/v1/namespaces/{ns}/services"
    given = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    created = api.create(services, given, note=False).body
    address = created["spec"]["clusterIP"]
    assert created["spec"]["clusterIPs"] == [address]
    shown = {**created["spec"], "clusterIP": "<address>", "clusterIPs": ["<address>"]}
    api.note(shown, created["status"])
    kept = api.patch(f"{services}/s", {"spec": {"selector": {"a": "b"}}}, note=False).body
    assert kept["spec"]["clusterIP"] == address
    headless = {**given, "metadata": {"name": "h"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}}
    api.create(services, headless)
    api.create(services, {**given, "metadata": {"name": "1-starts-with-a-digit"}}, note=False)
    api.delete(f"{services}/h")
