"""Invalid objects: every complaint with its field, reason and words, in the same order."""

from typing import Any

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
from tests.podium_cluster.apiserver.contract.session import STRATEGIC, Object, Session

BATCH = "/apis/batch/v1/namespaces/{ns}/jobs"
APPS = "/apis/apps/v1/namespaces/{ns}"


def with_container(**fields: Any) -> Object:
    given = pod()
    given["spec"]["containers"][0] |= fields
    return given


def refused(api: Session, path: str, *objects: Object) -> None:
    for given in objects:
        answer = api.create(path, given)
        assert answer.code in (400, 422), answer.body


@contract
def test_metadata(api: Session) -> None:
    for metadata in (
        {"name": "Upper_Case"},
        {"name": "x" * 254},
        {"name": "a", "labels": {"bad key": "v"}},
        {"name": "a", "labels": {"k": "bad value!"}},
        {"name": "a", "labels": {"a/b/c": "v"}},
        {"name": "a", "labels": {"k": "x" * 64}},
        {"name": "a", "annotations": {"bad key": "v"}},
        {"name": "a", "annotations": {"k": "x" * 300_000}},
        {"name": "a", "finalizers": ["nodomain"]},
        {"name": "a", "finalizers": ["bad domain/x"]},
        {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
        {"name": "a", "ownerReferences": [{"kind": "Pod", "name": "", "uid": "u"}]},
        {
            "name": "a",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": True},
                {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "2", "controller": True},
            ],
        },
    ):
        api.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


@contract
def test_containers(api: Session) -> None:
    refused(
        api,
        PODS,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
        with_container(name="Bad_Name"),
        with_container(name=""),
        with_container(image=""),
        with_container(image=" i "),
        with_container(imagePullPolicy="Sometimes"),
        with_container(terminationMessagePolicy="Nowhere"),
        pod(containers=[{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]),
        pod(initContainers=[{"name": "c", "image": "i"}]),
        pod(initContainers=[{"name": "d", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}}]),
    )


@contract
def test_resources(api: Session) -> None:
    refused(
        api,
        PODS,
        with_container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        with_container(resources={"requests": {"memory": "-1"}}),
        with_container(resources={"limits": {"cpu": "-100m"}}),
        with_container(resources={"requests": {"nonsense": "1"}}),
        with_container(resources={"requests": {"pods": "1"}}),
        with_container(resources={"requests": {"example.com/card": "1"}}),
        with_container(resources={"requests": {"example.com/card": "1"}, "limits": {"example.com/card": "2"}}),
        with_container(resources={"requests": {"example.com/card": "500m"}, "limits": {"example.com/card": "500m"}}),
        with_container(resources={"limits": {"hugepages-2Mi": "4Mi"}}),
        with_container(resources={"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}),
        with_container(resources={"requests": {"cpu": "much"}}),
        with_container(resources={"claims": [{"name": "none"}]}),
    )


@contract
def test_ports(api: Session) -> None:
    refused(
        api,
        PODS,
        with_container(ports=[{"containerPort": 0}]),
        with_container(ports=[{"containerPort": 70000}]),
        with_container(ports=[{"containerPort": 80, "protocol": "ICMP"}]),
        with_container(ports=[{"containerPort": 80, "name": "Bad_Name"}]),
        with_container(ports=[{"containerPort": 80, "name": "a-name-that-is-too-long"}]),
        with_container(ports=[{"containerPort": 80, "name": "80"}]),
        with_container(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),
        with_container(ports=[{"containerPort": 80, "hostPort": -1}]),
        with_container(ports=[{"containerPort": 80, "hostPort": 90}, {"containerPort": 81, "hostPort": 90}]),
    )
    given = with_container(ports=[{"containerPort": 80, "hostPort": 81}])
    given["spec"]["hostNetwork"] = True
    refused(api, PODS, given)


@contract
def test_environment(api: Session) -> None:
    refused(
        api,
        PODS,
        with_container(env=[{"name": ""}]),
        with_container(env=[{"name": "A=B"}]),
        with_container(env=[{"name": "A", "valueFrom": {}}]),
        with_container(env=[{"name": "A", "value": "x", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]),
        with_container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": ""}}}]),
        with_container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "bad key"}}}]),
        with_container(envFrom=[{}]),
    )


@contract
def test_volumes_and_mounts(api: Session) -> None:
    mounted = with_container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}])
    mounted["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    refused(
        api,
        PODS,
        with_container(volumeMounts=[{"name": "v", "mountPath": "/a"}]),
        with_container(volumeMounts=[{"name": "", "mountPath": ""}]),
        mounted,
        pod(volumes=[{"name": "v"}, {"name": "v"}]),
        pod(volumes=[{"name": "Bad_Name", "emptyDir": {}}]),
        pod(volumes=[{"name": "", "emptyDir": {}}]),
        pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
        pod(volumes=[{"name": "v", "hostPath": {"path": ""}}]),
        pod(volumes=[{"name": "v", "hostPath": {"path": "/a/../b"}}]),
        pod(volumes=[{"name": "v", "hostPath": {"path": "/a", "type": "Odd"}}]),
        pod(volumes=[{"name": "v", "secret": {}}]),
        pod(volumes=[{"name": "v", "configMap": {"name": ""}}]),
        pod(volumes=[{"name": "v", "configMap": {"name": "c", "defaultMode": 4096}}]),
        pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]),
        with_container(volumeDevices=[{"name": "v", "devicePath": "/dev/x"}]),
    )


@contract
def test_probes_and_hooks(api: Session) -> None:
    refused(
        api,
        PODS,
        with_container(livenessProbe={}),
        with_container(livenessProbe={"exec": {"command": []}}),
        with_container(livenessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 80}}),
        with_container(livenessProbe={"exec": {"command": ["x"]}, "periodSeconds": -1}),
        with_container(livenessProbe={"exec": {"command": ["x"]}, "successThreshold": 2}),
        with_container(lifecycle={"preStop": {}}),
    )


@contract
def test_where_a_pod_may_run(api: Session) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"

    def nodes(*terms: Object) -> Object:
        return pod(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": list(terms)}}})

    def pods(term: Object) -> Object:
        return pod(affinity={"podAntiAffinity": {required: [term]}})

    refused(
        api,
        PODS,
        pod(nodeSelector={"bad key": "v"}),
        pod(nodeName="Bad_Name"),
        nodes(),
        nodes({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        nodes({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
        nodes({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}),
        nodes({"matchExpressions": [{"key": "bad key", "operator": "Odd"}]}),
        nodes({"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}),
        nodes({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x"]}]}),
        nodes({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}),
        pod(affinity={"nodeAffinity": {preferred: [{"weight": 0, "preference": {}}]}}),
        pods({"topologyKey": ""}),
        pods({"topologyKey": "bad key"}),
        pods({"topologyKey": "zone", "namespaces": ["Bad_Name"]}),
        pods({"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}}),
        pods({"topologyKey": "zone", "matchLabelKeys": ["a"]}),
        pod(affinity={"podAffinity": {preferred: [{"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]}}),
        pod(tolerations=[{"operator": "Equal", "value": "x"}]),
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        pod(tolerations=[{"key": "a", "operator": "Odd"}]),
        pod(tolerations=[{"key": "a", "operator": "Lt", "value": "1"}]),
        pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "Odd"}]),
        pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]),
        pod(tolerations=[{"key": "bad key", "value": "bad value!"}]),
        pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": ""}]),
        pod(
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}
            ]
        ),
        pod(
            topologySpreadConstraints=2
            * [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0}]
        ),
        pod(
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Odd"}
            ]
        ),
        pod(schedulingGates=[{"name": "bad name"}]),
        pod(schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/a"}]),
        pod(schedulingGates=[{"name": "example.com/a"}], nodeName="n"),
    )


@contract
def test_other_parts_of_a_pod(api: Session) -> None:
    refused(
        api,
        PODS,
        pod(restartPolicy="Sometimes"),
        pod(dnsPolicy="Odd"),
        pod(activeDeadlineSeconds=0),
        pod(hostname="Bad_Name"),
        pod(subdomain="a.b"),
        pod(serviceAccountName="Bad_Name"),
        pod(readinessGates=[{"conditionType": "bad type"}]),
        pod(resourceClaims=[{"name": "a"}]),
        pod(resourceClaims=[{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}]),
        pod(resourceClaims=[{"name": "a", "resourceClaimName": "x"}, {"name": "a", "resourceClaimName": "x"}]),
        pod(ephemeralContainers=[{"name": "e", "image": "i"}]),
    )
    for given in (pod(runtimeClassName="none"), pod(overhead={"cpu": "1"})):
        assert api.create(PODS, given).code == 403


@contract
def test_nodes(api: Session) -> None:
    name = f"{api.namespace}-n"
    effects = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}]
    refused(
        api,
        NODES,
        node(name, taints=effects),
        node(name, taints=[{"key": "a", "effect": "Odd"}]),
        node(name, taints=[{"key": "a"}]),
        node(name, taints=[{"key": "bad key", "value": "bad value!", "effect": "NoSchedule"}]),
        {**node(name), "status": {"allocatable": {"cpu": "-1"}}},
        {**node(name), "status": {"capacity": {"pods": "1500m"}}},
        node(name, podCIDRs=["10.0.0.0/24", "10.0.1.0/24"]),
        node("Bad_Name"),
    )
    api.create(NODES, node(name, podCIDR="10.0.0.0/24", providerID="p"), note=False)
    api.patch(f"{NODES}/{name}", {"spec": {"providerID": "q"}})
    api.patch(f"{NODES}/{name}", {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}})
    api.patch(f"{NODES}/{name}", {"spec": {"taints": effects}})
    api.patch(f"{NODES}/{name}/status", {"status": {"addresses": 2 * [{"type": "InternalIP", "address": "1.2.3.4"}]}})
    api.patch(f"{NODES}/{name}/status", {"status": {"capacity": {"cpu": "-1"}}})
    api.delete(f"{NODES}/{name}", note=False)


@contract
def test_deployments(api: Session) -> None:
    other = deployment()
    other["spec"]["template"]["metadata"]["labels"] = {"app": "b", "more": "x"}
    never = deployment()
    never["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    limited = deployment()
    limited["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 5
    empty = deployment()
    empty["spec"]["template"]["spec"]["containers"] = []
    unselected = deployment()
    del unselected["spec"]["selector"]
    refused(
        api,
        DEPLOYMENTS,
        deployment(replicas=-1),
        other,
        never,
        limited,
        empty,
        unselected,
        deployment(selector={}),
        deployment(selector={"matchLabels": {"bad key": "x"}}),
        deployment(selector={"matchExpressions": [{"key": "app", "operator": "Odd"}]}),
        deployment(strategy={"type": "Odd"}),
        deployment(strategy={"rollingUpdate": {"maxSurge": "x", "maxUnavailable": -1}}),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}},
    )
    api.create(DEPLOYMENTS, deployment(), note=False)
    changed = {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}
    api.patch(f"{DEPLOYMENTS}/d", {"spec": changed})


@contract
def test_other_workloads(api: Session) -> None:
    spec = deployment()["spec"]

    def made(kind: str, **fields: Any) -> Object:
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"}, "spec": {**spec, **fields}}

    refused(api, f"{APPS}/replicasets", made("ReplicaSet", replicas=-1), made("ReplicaSet", selector={}))
    refused(
        api,
        f"{APPS}/statefulsets",
        made("StatefulSet", replicas=-1, podManagementPolicy="Odd"),
        made("StatefulSet", updateStrategy={"type": "Odd"}),
        made("StatefulSet", serviceName="Bad_Name"),
    )
    refused(
        api,
        f"{APPS}/daemonsets",
        made("DaemonSet", updateStrategy={"type": "Odd"}),
        made("DaemonSet", selector={"matchLabels": {"app": "b"}}),
    )
    api.create(f"{APPS}/statefulsets", made("StatefulSet", serviceName="s"), note=False)
    api.patch(f"{APPS}/statefulsets/x", {"spec": {"serviceName": "t"}})
    api.create(f"{APPS}/daemonsets", made("DaemonSet"), note=False)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "new"}]}}}}
    api.patch(f"{APPS}/daemonsets/x", image, STRATEGIC)


@contract
def test_jobs(api: Session) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}

    def job(**spec: Any) -> Object:
        filled = {"template": template, **spec}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": filled}

    always = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    for given in (
        job(parallelism=-1),
        job(completions=-1),
        job(template=always),
        job(completionMode="Odd"),
        job(completionMode="Indexed", parallelism=1),
    ):
        assert api.create(BATCH, given).code == 422
    api.create(BATCH, job(completions=2), note=False)
    api.patch(f"{BATCH}/j", {"spec": {"template": {"spec": {"hostNetwork": True}}}})
    assert api.patch(f"{BATCH}/j", {"spec": {"parallelism": 2, "suspend": True}}, note=False).code == 200


@contract
def test_storage(api: Session) -> None:
    claims, volumes = "/api/v1/namespaces/{ns}/persistentvolumeclaims", "/api/v1/persistentvolumes"
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    name = api.namespace

    def claim(**spec: Any) -> Object:
        filled = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": filled}

    def volume(**spec: Any) -> Object:
        filled = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}, **spec}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": filled}

    def storage_class(**fields: Any) -> Object:
        return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, **fields}

    refused(
        api,
        claims,
        claim(accessModes=[]),
        claim(accessModes=["Odd"]),
        claim(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
        claim(resources={}),
        claim(resources={"requests": {"storage": "0"}}),
        claim(storageClassName="Bad_Name"),
        claim(volumeMode="Odd"),
    )
    refused(
        api,
        volumes,
        volume(accessModes=[]),
        volume(capacity={}),
        volume(capacity={"storage": "-1"}),
        volume(hostPath=None),
        volume(nfs={"server": "s", "path": "/p"}),
        volume(persistentVolumeReclaimPolicy="Odd"),
        volume(nodeAffinity={"required": {"nodeSelectorTerms": []}}),
        volume(volumeMode="Odd"),
    )
    refused(
        api,
        classes,
        storage_class(),
        storage_class(provisioner="a b"),
        storage_class(provisioner="example.com/p", reclaimPolicy="Odd"),
        storage_class(provisioner="example.com/p", volumeBindingMode="Odd"),
    )
    api.create(classes, storage_class(provisioner="example.com/p"), note=False)
    api.patch(f"{classes}/{name}", {"provisioner": "example.com/q"})
    api.patch(f"{classes}/{name}", {"parameters": {"a": "b"}})
    api.delete(f"{classes}/{name}", note=False)


@contract
def test_small_kinds(api: Session) -> None:
    ns = "/namespaces/{ns}"

    def budget(**spec: Any) -> Object:
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}

    def priority(name: str, **fields: Any) -> Object:
        return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, **fields}

    refused(
        api,
        f"/apis/policy/v1{ns}/poddisruptionbudgets",
        budget(minAvailable=1, maxUnavailable=1),
        budget(minAvailable=-1),
        budget(minAvailable="x"),
        budget(maxUnavailable="101%"),
        budget(selector={"matchLabels": {"bad key": "x"}}),
        budget(unhealthyPodEvictionPolicy="Odd"),
    )
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    refused(
        api,
        classes,
        priority("system-odd", value=1),
        priority("system-node-critical", value=1),
        priority(api.namespace, value=1_000_000_001),
        priority(api.namespace, value=1, preemptionPolicy="Odd"),
    )
    api.create(classes, priority(api.namespace, value=1), note=False)
    api.patch(f"{classes}/{api.namespace}", {"value": 2})
    api.patch(f"{classes}/{api.namespace}", {"preemptionPolicy": "Never"})
    api.delete(f"{classes}/{api.namespace}", note=False)


@contract
def test_config_maps_and_secrets(api: Session) -> None:
    secrets = "/api/v1/namespaces/{ns}/secrets"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    refused(api, secrets, {**secret, "data": {"a": "not base64!"}})
    api.create(CONFIG_MAPS, {**config_map(a="1"), "immutable": True}, note=False)
    api.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "2"}})
    api.patch(f"{CONFIG_MAPS}/c", {"immutable": None})
    api.create(secrets, secret, note=False)
    api.patch(f"{secrets}/s", {"type": "other"})
