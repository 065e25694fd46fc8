"""The verbs on kinds, in process."""

import random
from typing import Any

import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kinds import EVENT, NAMESPACE, NODE, POD, built_in

CONFIG_MAP = built_in("v1", "ConfigMap")
LEASE = built_in("coordination.k8s.io/v1", "Lease")
DEPLOYMENT = built_in("apps/v1", "Deployment")


def new_api() -> EmbeddedApi:
    return EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1))


def pod(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def refusal(error: pytest.ExceptionInfo[StatusError]) -> tuple[int, str, str]:
    return error.value.code, error.value.reason, error.value.message


def test_a_new_object_gets_uid_birth_and_version() -> None:
    api = new_api()
    made = api.create(CONFIG_MAP, {"metadata": {"name": "a", "uid": "mine"}, "data": {"k": "v"}})
    assert made["kind"] == "ConfigMap"
    assert made["metadata"]["namespace"] == "default"
    assert made["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert made["metadata"]["uid"] != "mine"
    assert int(made["metadata"]["resourceVersion"]) == api.store.revision
    assert api.get(CONFIG_MAP, "default", "a") == made


def test_the_same_seed_gives_the_same_uids() -> None:
    first, second = (new_api().create(POD, pod())["metadata"]["uid"] for _ in range(2))
    assert first == second


def test_a_name_is_made_from_its_prefix() -> None:
    made = new_api().create(CONFIG_MAP, {"metadata": {"generateName": "a-"}})
    assert made["metadata"]["name"].startswith("a-")
    assert len(made["metadata"]["name"]) == 7


def test_a_new_pod_is_pending_with_its_classes_priority() -> None:
    made = new_api().create(POD, pod(priorityClassName="system-node-critical") | {"status": {"phase": "Running"}})
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["spec"]["priority"] == 2_000_001_000
    assert made["metadata"]["generation"] == 1


def test_a_pod_may_not_choose_its_own_priority() -> None:
    with pytest.raises(StatusError) as error:
        new_api().create(POD, pod(priority=5))
    why = "the integer value of priority (5) must not be provided in pod spec; priority admission controller"
    told = f'pods "web" is forbidden: {why} computed 0 from the given PriorityClass name'
    assert refusal(error) == (403, "Forbidden", told)


def test_a_node_may_be_created_with_its_status() -> None:
    made = new_api().create(NODE, {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}})
    assert made["status"]["allocatable"] == {"cpu": "4"}


def test_an_object_needs_its_namespace() -> None:
    with pytest.raises(StatusError) as error:
        new_api().create(POD, pod(), namespace="nowhere")
    assert refusal(error) == (404, "NotFound", 'namespaces "nowhere" not found')


def test_nothing_is_created_in_a_namespace_that_is_going() -> None:
    api = new_api()
    api.create(NAMESPACE, {"metadata": {"name": "old"}})
    going = api.delete(NAMESPACE, None, "old")
    assert going["status"]["phase"] == "Terminating"
    with pytest.raises(StatusError) as error:
        api.create(CONFIG_MAP, {"metadata": {"name": "a"}}, namespace="old")
    why = "unable to create new content in namespace old because it is being terminated"
    assert refusal(error) == (403, "Forbidden", f'configmaps "a" is forbidden: {why}')
    assert error.value.status()["details"]["causes"][0]["reason"] == "NamespaceTerminating"


def test_the_last_spec_finalizer_of_a_namespace_lets_it_go() -> None:
    api = new_api()
    api.create(NAMESPACE, {"metadata": {"name": "old"}})
    going = api.delete(NAMESPACE, None, "old")
    api.update(NAMESPACE, going | {"spec": {"finalizers": []}}, subresource="finalize")
    assert api.store.get(NAMESPACE, "", "old") is None


def test_namespaces_of_the_system_stay() -> None:
    with pytest.raises(StatusError) as error:
        new_api().delete(NAMESPACE, None, "kube-system")
    assert refusal(error) == (
        403,
        "Forbidden",
        'namespaces "kube-system" is forbidden: this namespace may not be deleted',
    )


def test_an_update_of_another_version_is_a_conflict() -> None:
    api = new_api()
    first = api.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    api.update(CONFIG_MAP, first | {"data": {"k": "1"}})
    with pytest.raises(StatusError) as error:
        api.update(CONFIG_MAP, first | {"data": {"k": "2"}})
    why = "the object has been modified; please apply your changes to the latest version and try again"
    assert refusal(error) == (409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {why}')


def test_an_update_that_changes_nothing_writes_nothing() -> None:
    api = new_api()
    made = api.create(CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    revision = api.store.revision
    assert api.update(CONFIG_MAP, made) == made
    assert api.store.revision == revision


def test_a_lease_must_say_which_version_it_replaces_and_may_be_created_by_an_update() -> None:
    api = new_api()
    lease = {"metadata": {"name": "l", "namespace": "default"}, "spec": {}}
    api.update(LEASE, lease)
    with pytest.raises(StatusError) as error:
        api.update(LEASE, lease | {"spec": {"holderIdentity": "me"}})
    assert error.value.code == 422


def test_a_changed_spec_counts_and_a_changed_status_does_not() -> None:
    api = new_api()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = api.create(DEPLOYMENT, {"metadata": {"name": "d"}, "spec": spec})
    assert made["metadata"]["generation"] == 1
    made = api.update(DEPLOYMENT, made | {"spec": {**made["spec"], "replicas": 2}, "status": {"replicas": 9}})
    assert (made["metadata"]["generation"], made["status"]) == (2, {})
    made = api.update(DEPLOYMENT, made | {"status": {"replicas": 2}, "spec": {}}, subresource="status")
    assert (made["metadata"]["generation"], made["status"]) == (2, {"replicas": 2})
    assert made["spec"]["replicas"] == 2


def test_events_are_one_collection_in_two_forms() -> None:
    api = new_api()
    modern = built_in("events.k8s.io/v1", "Event")
    said = {"note": "hello", "regarding": {"kind": "Pod", "name": "web"}, "reportingController": "me"}
    api.create(modern, {"metadata": {"name": "e"}, **said})
    core = api.get(EVENT, "default", "e")
    assert (core["message"], core["involvedObject"]["name"], core["reportingComponent"]) == ("hello", "web", "me")
    again = api.get(modern, "default", "e")
    assert (again["note"], again["regarding"]["name"], again["apiVersion"]) == ("hello", "web", "events.k8s.io/v1")
    assert api.list(EVENT, field_selector="involvedObject.name=web")
    assert api.list(modern, field_selector="regarding.name=web")


def test_a_pod_is_bound_once() -> None:
    api = new_api()
    made = api.create(POD, pod())
    api.bind("default", "web", {"metadata": {"uid": made["metadata"]["uid"]}, "target": {"name": "n1"}})
    bound = api.get(POD, "default", "web")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
    with pytest.raises(StatusError) as error:
        api.bind("default", "web", {"target": {"name": "n2"}})
    why = 'pod web is already assigned to node "n1"'
    assert refusal(error) == (409, "Conflict", f'Operation cannot be fulfilled on pods/binding "web": {why}')


def test_a_binding_of_another_pod_of_the_name_is_a_conflict() -> None:
    api = new_api()
    uid = api.create(POD, pod())["metadata"]["uid"]
    with pytest.raises(StatusError) as error:
        api.bind("default", "web", {"metadata": {"uid": "other"}, "target": {"name": "n1"}})
    assert (error.value.code, error.value.reason) == (409, "Conflict")
    assert error.value.message.endswith(f"Precondition failed: UID in precondition: other, UID in object meta: {uid}")


def test_objects_given_and_returned_are_not_the_stores() -> None:
    api = new_api()
    given = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    made = api.create(CONFIG_MAP, given)
    made["data"]["k"] = given["data"]["k"] = "changed"
    assert api.get(CONFIG_MAP, "default", "a")["data"] == {"k": "v"}
    assert given["metadata"] == {"name": "a"}
