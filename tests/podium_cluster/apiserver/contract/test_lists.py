"""Lists: order, selectors good and bad, pages, and lists of single kinds of metadata."""

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PODS,
    binding,
    config_map,
    deployment,
    pod,
)
from tests.podium_cluster.apiserver.contract.session import Session


@contract
def test_lists_are_in_the_order_of_names(api: Session) -> None:
    for name in ("b", "c", "a", "a-b", "a.b"):
        api.create(CONFIG_MAPS, config_map(name), note=False)
    found = api.get(CONFIG_MAPS)
    assert found.names() == ["a", "a-b", "a.b", "b", "c"]
    assert found.body["kind"] == "ConfigMapList"


@contract
def test_an_empty_list_is_a_list(api: Session) -> None:
    assert api.get(CONFIG_MAPS).body["items"] == []
    assert api.get(DEPLOYMENTS).body["kind"] == "DeploymentList"


@contract
def test_label_selectors_choose(api: Session) -> None:
    for name, labels in {"a": {"x": "1"}, "b": {"x": "2"}, "c": {"y": "1"}, "d": {}}.items():
        api.create(CONFIG_MAPS, config_map(name, labels=labels), note=False)
    for selector in ("x=1", "x==1", "x!=1", "x", "!x", "x in (1,2)", "x notin (1)", "x,y", "x>1", "x<2", "", "y=1,!x"):
        api.note(selector, api.get(CONFIG_MAPS, query={"labelSelector": selector}, note=False).names())


@contract
def test_bad_label_selectors_are_refused(api: Session) -> None:
    for selector in (
        ",",
        "x in",
        "x in (",
        "=1",
        "x=a b",
        "x==",
        "a b",
        "x>y",
        "-x",
        "x in ()",
        "x=1,,y",
        "()",
        "x===1",
    ):
        found = api.get(CONFIG_MAPS, query={"labelSelector": selector}, note=False)
        api.note(selector, found.code, found.message, found.reason)


@contract
def test_field_selectors_choose(api: Session) -> None:
    for name in ("a", "b"):
        api.create(PODS, pod(name), note=False)
    api.create(f"{PODS}/a/binding", binding("a", "n"), note=False)
    for selector in (
        "metadata.name=a",
        "metadata.name!=a",
        "spec.nodeName=",
        "spec.nodeName=n",
        "spec.nodeName==n,status.phase=Pending",
        "status.phase!=Running",
        "spec.schedulerName=default-scheduler",
        "metadata.namespace=other",
        "",
    ):
        api.note(selector, api.get(PODS, query={"fieldSelector": selector}, note=False).names())


@contract
def test_bad_field_selectors_are_refused(api: Session) -> None:
    for selector in ("spec.nope=1", "metadata.labels=x", "nonsense", "a=b=c", "status.phase"):
        found = api.get(PODS, query={"fieldSelector": selector}, note=False)
        api.note(selector, found.code, found.message, found.reason)
    api.get(CONFIG_MAPS, query={"fieldSelector": "spec.nodeName=n"})
    api.get(DEPLOYMENTS, query={"fieldSelector": "status.phase=x"})


@contract
def test_a_list_can_be_read_in_pages(api: Session) -> None:
    for at in range(5):
        api.create(CONFIG_MAPS, config_map(f"c{at}"), note=False)
    first = api.get(CONFIG_MAPS, query={"limit": "2"})
    assert first.names() == ["c0", "c1"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    api.create(CONFIG_MAPS, config_map("c9"), note=False)
    second = api.get(CONFIG_MAPS, query={"limit": "2", "continue": first.body["metadata"]["continue"]})
    assert second.names() == ["c2", "c3"]
    assert second.version == first.version
    last = api.get(CONFIG_MAPS, query={"limit": "2", "continue": second.body["metadata"]["continue"]})
    assert last.names() == ["c4"]
    assert "continue" not in last.body["metadata"]
    chosen = api.get(CONFIG_MAPS, query={"limit": "1", "fieldSelector": "metadata.name!=c0"})
    assert chosen.names() == ["c1"]


@contract
def test_bad_pages_are_refused(api: Session) -> None:
    api.get(CONFIG_MAPS, query={"continue": "nonsense"})
    api.get(CONFIG_MAPS, query={"limit": "x"})
    api.get(CONFIG_MAPS, query={"limit": "-1"}, keep=("kind",))


@contract
def test_resource_versions_of_lists_are_checked(api: Session) -> None:
    version = api.create(CONFIG_MAPS, config_map(), note=False).version
    assert api.get(CONFIG_MAPS, query={"resourceVersion": "0"}, keep=("kind",)).code == 200  # may be from before
    assert api.get(CONFIG_MAPS, query={"resourceVersion": version}).names() == ["c"]
    match = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    assert api.get(CONFIG_MAPS, query=match).names() == ["c"]
    api.get(CONFIG_MAPS, query={"resourceVersion": "x"})
    api.get(CONFIG_MAPS, query={"resourceVersionMatch": "Exact"})
    api.get(CONFIG_MAPS, query={"resourceVersion": "0", "resourceVersionMatch": "Exact"})
    api.get(CONFIG_MAPS, query={"resourceVersion": version, "resourceVersionMatch": "Sometimes"})
    far = api.get(CONFIG_MAPS, query={"resourceVersion": "999999999", "timeoutSeconds": "1"}, note=False)
    assert far.code in (400, 504)
    api.note(far.code, far.reason)


@contract
def test_an_old_exact_version_shows_the_past(api: Session) -> None:
    version = api.create(CONFIG_MAPS, config_map("a"), note=False).version
    api.create(CONFIG_MAPS, config_map("b"), note=False)
    past = api.get(CONFIG_MAPS, query={"resourceVersion": version, "resourceVersionMatch": "Exact"})
    assert past.names() == ["a"]


@contract
def test_lists_and_objects_can_be_asked_for_as_metadata_only(api: Session) -> None:
    api.create(DEPLOYMENTS, deployment(), note=False)
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    found = api.get(DEPLOYMENTS, headers={"Accept": accept})
    assert found.body["kind"] == "PartialObjectMetadataList"
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    api.get(f"{DEPLOYMENTS}/d", headers={"Accept": accept})


@contract
def test_all_namespaces_are_listed_together(api: Session) -> None:
    other = f"{api.namespace}-x"
    api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}, note=False)
    labels = {"only": api.namespace}
    api.create(CONFIG_MAPS, config_map("b", labels=labels), note=False)
    api.create(f"/api/v1/namespaces/{other}/configmaps", config_map("a", labels=labels), note=False)
    found = api.get("/api/v1/configmaps", query={"labelSelector": f"only={api.namespace}"})
    assert found.names() == ["a", "b"]  # "-" comes before "/", which ends a namespace
