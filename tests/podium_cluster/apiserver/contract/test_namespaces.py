"""Namespaces: nothing without one, nothing new in one that is going, and how one goes."""

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import CONFIG_MAPS, NAMESPACES, config_map
from tests.podium_cluster.apiserver.contract.session import Session


@contract
def test_nothing_is_created_where_there_is_no_namespace(api: Session) -> None:
    api.create("/api/v1/namespaces/none/configmaps", config_map())
    api.create(
        "/api/v1/namespaces/none/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    )
    assert api.get("/api/v1/namespaces/none/configmaps").names() == []
    api.get("/api/v1/namespaces/none/configmaps/c")
    api.get("/api/v1/namespaces/none")


@contract
def test_a_namespace_is_active_and_carries_its_name(api: Session) -> None:
    name = f"{api.namespace}-x"
    created = api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    assert created.body["status"] == {"phase": "Active"}
    api.patch(f"{NAMESPACES}/{name}", {"metadata": {"labels": {"a": "b", "kubernetes.io/metadata.name": "other"}}})
    api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "With.Dots"}})
    api.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "namespace": "default"}}
    )


@contract
def test_a_deleted_namespace_takes_nothing_new(api: Session) -> None:
    name = f"{api.namespace}-x"
    inside = f"{NAMESPACES}/{name}/configmaps"
    api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, note=False)
    api.create(inside, config_map(), note=False)
    going = api.delete(f"{NAMESPACES}/{name}")
    assert going.body["status"]["phase"] == "Terminating"
    refused = api.create(inside, config_map("late"))
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert api.patch(f"{inside}/c", {"data": {"a": "1"}}).code == 200
    api.delete(f"{NAMESPACES}/{name}", note=False)


@contract
def test_a_namespace_goes_when_its_finalizer_is_taken_off(api: Session) -> None:
    name = f"{api.namespace}-x"
    api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, note=False)
    going = api.delete(f"{NAMESPACES}/{name}").body
    going["spec"]["finalizers"] = []
    assert api.put(f"{NAMESPACES}/{name}/finalize", going, keep=("kind", "spec")).code == 200
    assert api.get(f"{NAMESPACES}/{name}").code == 404


@contract
def test_the_namespaces_of_the_system_stay(api: Session) -> None:
    for name in ("default", "kube-system", "kube-public"):
        api.delete(f"{NAMESPACES}/{name}")
    assert api.create(CONFIG_MAPS, config_map()).code == 201
