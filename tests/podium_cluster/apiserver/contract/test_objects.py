"""Creating, reading, replacing and deleting: the plain verbs, their conflicts and their preconditions."""

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PODS,
    config_map,
    deployment,
    node,
    pod,
)
from tests.podium_cluster.apiserver.contract.session import Object, Session


@contract
def test_a_pod_is_created_with_defaults_and_read_back(api: Session) -> None:
    created = api.create(PODS, pod())
    assert created.code == 201
    assert created.body["status"]["phase"] == "Pending"
    assert api.get(f"{PODS}/p").body == created.body


@contract
def test_a_deployment_is_created_with_defaults(api: Session) -> None:
    assert api.create(DEPLOYMENTS, deployment()).body["spec"]["replicas"] == 1


@contract
def test_a_node_is_created_with_the_status_it_brings(api: Session) -> None:
    name = f"{api.namespace}-n"
    given = {**node(name, podCIDR="10.0.0.0/24"), "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}}
    assert api.create(NODES, given).body["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi"}
    assert api.delete(f"{NODES}/{name}").code == 200


@contract
def test_other_kinds_are_created_as_given(api: Session) -> None:
    ns = "/namespaces/{ns}"
    template = deployment()["spec"]["template"]
    selector = {"matchLabels": {"app": "a"}}
    job = {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    for path, body in [
        (
            f"/apis/apps/v1{ns}/replicasets",
            {"kind": "ReplicaSet", "spec": {"selector": selector, "template": template}},
        ),
        (
            f"/apis/apps/v1{ns}/statefulsets",
            {"kind": "StatefulSet", "spec": {"serviceName": "s", "selector": selector, "template": template}},
        ),
        (f"/apis/apps/v1{ns}/daemonsets", {"kind": "DaemonSet", "spec": {"selector": selector, "template": template}}),
        (f"/apis/batch/v1{ns}/jobs", {"kind": "Job", "spec": {"template": job}}),
        (
            f"/apis/policy/v1{ns}/poddisruptionbudgets",
            {"kind": "PodDisruptionBudget", "spec": {"minAvailable": 1, "selector": selector}},
        ),
        (f"/apis/coordination.k8s.io/v1{ns}/leases", {"kind": "Lease", "spec": {"holderIdentity": "me"}}),
        (f"/api/v1{ns}/secrets", {"kind": "Secret", "data": {"a": "YQ=="}}),
        (
            f"/api/v1{ns}/persistentvolumeclaims",
            {
                "kind": "PersistentVolumeClaim",
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
        ),
    ]:
        group = path.split("/namespaces")[0].removeprefix("/apis/").removeprefix("/api/")
        given = {"apiVersion": group, "metadata": {"name": "x"}, **body}
        assert api.create(path, given).code == 201
        assert api.delete(f"{path}/x", note=False).code == 200


@contract
def test_cluster_wide_kinds_are_created_as_given(api: Session) -> None:
    name = api.namespace
    kinds: list[tuple[str, str, Object]] = [
        ("scheduling.k8s.io/v1", "priorityclasses", {"kind": "PriorityClass", "value": 5}),
        ("storage.k8s.io/v1", "storageclasses", {"kind": "StorageClass", "provisioner": "example.com/p"}),
        ("storage.k8s.io/v1", "csidrivers", {"kind": "CSIDriver", "spec": {}}),
        (
            "storage.k8s.io/v1",
            "csinodes",
            {"kind": "CSINode", "spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["z"]}]}},
        ),
    ]
    for group, plural, body in kinds:
        path = f"/apis/{group}/{plural}"
        assert api.create(path, {"apiVersion": group, "metadata": {"name": name}, **body}).code == 201
        assert api.delete(f"{path}/{name}").code == 200
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}},
    }
    assert api.create("/api/v1/persistentvolumes", volume).code == 201
    assert api.delete(f"/api/v1/persistentvolumes/{name}").code == 200


@contract
def test_a_name_can_be_generated(api: Session) -> None:
    given: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
    first = api.create(CONFIG_MAPS, given).body["metadata"]["name"]
    second = api.create(CONFIG_MAPS, given).body["metadata"]["name"]
    assert first != second
    assert len(first) == len("made-") + 5
    given["metadata"]["generateName"] = "x" * 80
    long = api.create(CONFIG_MAPS, given, note=False).body["metadata"]["name"]
    api.note(len(long))


@contract
def test_an_object_without_a_name_is_refused(api: Session) -> None:
    api.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
    api.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap"})


@contract
def test_what_exists_cannot_be_created(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map())
    again = api.create(CONFIG_MAPS, config_map())
    assert (again.code, again.reason) == (409, "AlreadyExists")
    api.create(DEPLOYMENTS, deployment())
    api.create(DEPLOYMENTS, deployment())


@contract
def test_what_does_not_exist_is_not_found(api: Session) -> None:
    assert api.get(f"{PODS}/none").code == 404
    api.get(f"{DEPLOYMENTS}/none")
    api.get(f"{NODES}/none")
    api.put(f"{CONFIG_MAPS}/none", config_map("none"))
    api.patch(f"{CONFIG_MAPS}/none", {})
    api.delete(f"{CONFIG_MAPS}/none")
    api.get(f"{PODS}/none/status")
    api.delete(f"{DEPLOYMENTS}/none")


@contract
def test_creating_ignores_what_only_the_server_may_say(api: Session) -> None:
    given = config_map()
    given["metadata"] |= {
        "uid": "mine",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 3,
        "generation": 7,
        "selfLink": "/x",
    }
    created = api.create(CONFIG_MAPS, given)
    assert "deletionTimestamp" not in created.body["metadata"]


@contract
def test_a_new_object_may_not_have_a_resource_version(api: Session) -> None:
    given = config_map()
    given["metadata"]["resourceVersion"] = "5"
    api.create(CONFIG_MAPS, given)


@contract
def test_replacing_with_an_old_version_is_a_conflict(api: Session) -> None:
    created = api.create(CONFIG_MAPS, config_map(a="1")).body
    changed = {**created, "data": {"a": "2"}}
    assert api.put(f"{CONFIG_MAPS}/c", changed).code == 200
    late = api.put(f"{CONFIG_MAPS}/c", {**created, "data": {"a": "3"}})
    assert (late.code, late.reason) == (409, "Conflict")


@contract
def test_replacing_without_a_version_always_succeeds(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map(a="1"))
    assert api.put(f"{CONFIG_MAPS}/c", config_map(a="2")).body["data"] == {"a": "2"}
    assert api.put(f"{CONFIG_MAPS}/c", config_map()).code == 200


@contract
def test_some_kinds_must_say_which_version_they_replace(api: Session) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    api.create(leases, lease)
    assert api.put(f"{leases}/l", lease).code == 422
    assert api.put(f"{leases}/other", {**lease, "metadata": {"name": "other"}}).code == 201
    budgets = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {}}
    api.create(budgets, budget)
    api.put(f"{budgets}/b", budget)


@contract
def test_replacing_with_another_uid_is_a_conflict(api: Session) -> None:
    created = api.create(CONFIG_MAPS, config_map()).body
    created["metadata"]["uid"] = "11111111-2222-4333-8444-555555555555"
    api.put(f"{CONFIG_MAPS}/c", created)


@contract
def test_a_write_that_changes_nothing_keeps_the_version(api: Session) -> None:
    created = api.create(CONFIG_MAPS, config_map(a="1"))
    assert api.put(f"{CONFIG_MAPS}/c", config_map(a="1")).version == created.version
    assert api.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "1"}}).version == created.version


@contract
def test_the_name_and_namespace_in_the_object_must_be_those_of_the_url(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map())
    api.put(f"{CONFIG_MAPS}/c", config_map("other"))
    other = config_map()
    other["metadata"]["namespace"] = "default"
    api.put(f"{CONFIG_MAPS}/c", other)
    api.create(CONFIG_MAPS, other)
    api.put(f"{CONFIG_MAPS}/c", {"apiVersion": "v1", "kind": "ConfigMap"})
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"name": "other"}})
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"namespace": "other"}})


@contract
def test_generations_count_changes_of_the_spec(api: Session) -> None:
    assert api.create(DEPLOYMENTS, deployment()).body["metadata"]["generation"] == 1
    assert api.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 3}}).body["metadata"]["generation"] == 2
    assert api.patch(f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"a": "b"}}}).body["metadata"]["generation"] == 2


@contract
def test_the_status_is_written_through_its_own_path(api: Session) -> None:
    created = api.create(DEPLOYMENTS, {**deployment(), "status": {"replicas": 9}}).body
    assert created["status"] == {}
    created["status"] = {"replicas": 2, "observedGeneration": 1}
    created["spec"]["replicas"] = 7
    written = api.put(f"{DEPLOYMENTS}/d/status", created).body
    assert (written["status"]["replicas"], written["spec"]["replicas"]) == (2, 1)
    patched = api.patch(f"{DEPLOYMENTS}/d", {"status": {"replicas": 5}}).body
    assert patched["status"]["replicas"] == 2
    api.patch(f"{DEPLOYMENTS}/d/status", {"status": {"readyReplicas": 1}})
    api.get(f"{DEPLOYMENTS}/d/status")


@contract
def test_scale_is_the_same_number_in_another_form(api: Session) -> None:
    api.create(DEPLOYMENTS, deployment(replicas=2))
    scale = api.get(f"{DEPLOYMENTS}/d/scale")
    assert scale.body["kind"] == "Scale"
    scale.body["spec"]["replicas"] = 5
    assert api.put(f"{DEPLOYMENTS}/d/scale", scale.body).body["spec"]["replicas"] == 5
    assert api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 6}}).body["spec"]["replicas"] == 6
    assert api.get(f"{DEPLOYMENTS}/d", note=False).body["spec"]["replicas"] == 6
    api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}})
    api.get(f"{DEPLOYMENTS}/none/scale")


@contract
def test_a_dry_run_answers_and_changes_nothing(api: Session) -> None:
    dry = {"dryRun": "All"}
    assert api.create(CONFIG_MAPS, config_map(a="1"), query=dry).code == 201
    assert api.get(f"{CONFIG_MAPS}/c").code == 404
    api.create(CONFIG_MAPS, config_map(a="1"))
    assert api.put(f"{CONFIG_MAPS}/c", config_map(a="2"), query=dry).body["data"] == {"a": "2"}
    assert api.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "3"}}, query=dry).body["data"] == {"a": "3"}
    assert api.delete(f"{CONFIG_MAPS}/c", query=dry).code == 200
    assert api.get(f"{CONFIG_MAPS}/c").body["data"] == {"a": "1"}
    api.create(CONFIG_MAPS, config_map(), query={"dryRun": "Some"})


@contract
def test_deleting_answers_with_a_status_or_with_the_object(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map())
    gone = api.delete(f"{CONFIG_MAPS}/c")
    assert (gone.code, gone.body["status"]) == (200, "Success")
    api.create(DEPLOYMENTS, deployment())
    api.delete(f"{DEPLOYMENTS}/d")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    claims = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
    api.create(claims, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "v"}, "spec": claim})
    assert api.delete(f"{claims}/v").body["kind"] == "PersistentVolumeClaim"


@contract
def test_deletions_can_ask_for_a_certain_object(api: Session) -> None:
    created = api.create(CONFIG_MAPS, config_map()).body
    other = "11111111-2222-4333-8444-555555555555"
    api.delete(f"{CONFIG_MAPS}/c", {"preconditions": {"uid": other}})
    refused = api.delete(f"{CONFIG_MAPS}/c", {"preconditions": {"resourceVersion": "1"}}, note=False)
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert api.delete(f"{CONFIG_MAPS}/c", {"preconditions": {"uid": created["metadata"]["uid"]}}).code == 200


@contract
def test_an_object_with_finalizers_stays_until_they_are_gone(api: Session) -> None:
    given = config_map()
    given["metadata"]["finalizers"] = ["example.com/f"]
    api.create(CONFIG_MAPS, given)
    marked = api.delete(f"{CONFIG_MAPS}/c")
    assert marked.code == 200
    assert "deletionTimestamp" in api.get(f"{CONFIG_MAPS}/c").body["metadata"]
    api.delete(f"{CONFIG_MAPS}/c")
    api.create(CONFIG_MAPS, config_map())
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"finalizers": ["example.com/f", "example.com/g"]}})
    assert api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"finalizers": None}}).code == 200
    assert api.get(f"{CONFIG_MAPS}/c").code == 404


@contract
def test_deletion_options_are_checked(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map())
    api.delete(f"{CONFIG_MAPS}/c", {"propagationPolicy": "Sometimes"})
    api.delete(f"{CONFIG_MAPS}/c", {"propagationPolicy": "Orphan", "orphanDependents": True})
    api.delete(f"{CONFIG_MAPS}/c", {"dryRun": ["Some"]})
    api.delete(f"{CONFIG_MAPS}/c", {"gracePeriodSeconds": -5})


@contract
def test_orphaning_and_foreground_deletion_leave_a_finalizer(api: Session) -> None:
    for name, policy in (("a", "Orphan"), ("b", "Foreground")):
        api.create(DEPLOYMENTS, deployment(name))
        api.delete(f"{DEPLOYMENTS}/{name}", {"propagationPolicy": policy})
        left = api.get(f"{DEPLOYMENTS}/{name}", keep=("metadata",))
        assert left.body["metadata"]["finalizers"]


@contract
def test_a_collection_can_be_deleted_by_selector(api: Session) -> None:
    for name in ("a", "b", "c"):
        api.create(CONFIG_MAPS, config_map(name, labels={"side": "left" if name != "c" else "right"}), note=False)
    answer = api.delete(CONFIG_MAPS, query={"labelSelector": "side=left"}, keep=("kind", "apiVersion"))
    assert answer.code == 200
    assert api.get(CONFIG_MAPS).names() == ["c"]
    api.delete("/api/v1/namespaces", keep=("kind",))


@contract
def test_metadata_that_is_fixed_stays(api: Session) -> None:
    created = api.create(CONFIG_MAPS, config_map()).body
    kept = api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"creationTimestamp": None, "generation": 5}}).body
    assert kept["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"uid": "11111111-2222-4333-8444-555555555555"}})
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"resourceVersion": "1"}})
    api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}})
