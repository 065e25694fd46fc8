"""Objects that leave much unsaid, one or more of each kind, for comparing what the API fills in."""

from typing import Any

Object = dict[str, Any]


def named(api_version: str, kind: str, /, **fields: Any) -> Object:
    metadata = {"name": "a", **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def pod(*containers: Object, **spec: Any) -> Object:
    return named("v1", "Pod", spec={"containers": list(containers) or [container()], **spec})


def container(image: str = "app:1", **fields: Any) -> Object:
    return {"name": "c", "image": image, **fields}


def template(**spec: Any) -> Object:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container()], **spec}}


SELECTOR = {"matchLabels": {"app": "a"}}

PODS = [
    pod(),
    pod(container("app")),
    pod(container("app:latest")),
    pod(container("Registry:5000/team/app")),
    pod(container("registry.example/team/app@sha256:" + "0" * 64)),
    pod(container("app:latest@sha256:" + "0" * 64)),
    pod(container("UPPER")),
    pod(container("app", imagePullPolicy="Never", terminationMessagePath="/x", terminationMessagePolicy="File")),
    pod(container(resources={"limits": {"cpu": "1.5", "memory": "1024Ki"}})),
    pod(container(resources={"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": "100u"}})),
    pod(container(ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}])),
    pod(container(ports=[{"containerPort": 80}]), hostNetwork=True),
    pod(container(livenessProbe={"httpGet": {"port": 80}}, readinessProbe={"exec": {"command": ["a"]}})),
    pod(container(startupProbe={"grpc": {"port": 80}, "periodSeconds": 5}, livenessProbe={"tcpSocket": {"port": 1}})),
    pod(container(lifecycle={"preStop": {"httpGet": {"port": "web"}}}, ports=[{"containerPort": 8, "name": "web"}])),
    pod(container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "B"}])),
    pod(container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k", "name": "n"}}}])),
    pod(container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}])),
    pod(
        restartPolicy="Never",
        dnsPolicy="Default",
        schedulerName="x",
        terminationGracePeriodSeconds=0,
        enableServiceLinks=False,
        securityContext={"runAsUser": 0},
        hostNetwork=False,
        nodeSelector={},
        tolerations=[],
        affinity={},
        priority=0,
    ),
    pod(
        volumes=[{"name": "a"}, {"name": "b", "hostPath": {"path": "/"}}, {"name": "c", "secret": {"secretName": "s"}}]
    ),
    pod(
        serviceAccountName="s",
        volumes=[
            {"name": "a", "configMap": {"name": "s"}},
            {"name": "b", "downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "d", "image": {"reference": "data"}},
            {"name": "e", "emptyDir": {"sizeLimit": "1000m", "medium": ""}},
            {"name": "f", "azureDisk": {"diskName": "x", "diskURI": "https://a.blob.core.windows.net/b/c.vhd"}},
            {"name": "g", "iscsi": {"targetPortal": "x", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
            {"name": "h", "rbd": {"monitors": ["x"], "image": "y"}},
            {"name": "i", "scaleIO": {"gateway": "x", "system": "y", "secretRef": {"name": "z"}, "volumeName": "v"}},
            {
                "name": "j",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                    }
                },
            },
        ],
    ),
    pod(
        initContainers=[container() | {"name": "i", "restartPolicy": "Always"}],
        topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        tolerations=[{"operator": "Exists"}],
    ),
    pod(
        container(resources={"requests": {"cpu": "100m", "memory": "64Mi"}}),
        container(resources={"requests": {"cpu": "200m"}}) | {"name": "d"},
        initContainers=[container(resources={"requests": {"cpu": "150m", "memory": "128Mi"}}) | {"name": "i"}],
        resources={"limits": {"cpu": "2", "memory": "1Gi"}},
    ),
]

WORKLOADS = [
    named("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": template()}),
    named(
        "apps/v1", "Deployment", spec={"selector": SELECTOR, "template": template(), "strategy": {"type": "Recreate"}}
    ),
    named(
        "apps/v1",
        "Deployment",
        spec={
            "selector": SELECTOR,
            "replicas": 0,
            "strategy": {"rollingUpdate": {"maxSurge": 0}},
            "template": template(hostNetwork=True),
        },
    ),
    named("apps/v1", "ReplicaSet", spec={"selector": SELECTOR, "template": template()}),
    named("apps/v1", "DaemonSet", spec={"selector": SELECTOR, "template": template()}),
    named(
        "apps/v1",
        "DaemonSet",
        spec={"selector": SELECTOR, "template": template(), "updateStrategy": {"type": "OnDelete"}},
    ),
    named("apps/v1", "StatefulSet", spec={"selector": SELECTOR, "template": template(), "serviceName": "s"}),
    named(
        "apps/v1",
        "StatefulSet",
        spec={
            "selector": SELECTOR,
            "template": template(),
            "updateStrategy": {"type": "RollingUpdate"},
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
        },
    ),
    named("batch/v1", "Job", spec={"template": template(restartPolicy="Never")}),
    named("batch/v1", "Job", spec={"template": template(restartPolicy="Never"), "parallelism": 2}),
    named("batch/v1", "Job", spec={"template": template(restartPolicy="Never"), "completions": 3}),
    named(
        "batch/v1",
        "Job",
        spec={
            "template": template(restartPolicy="Never"),
            "completions": 2,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 1,
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}],
            },
        },
    ),
    named("v1", "ReplicationController", spec={"template": template()}),
]

OTHERS = [
    named(
        "v1", "Service", spec={"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "targetPort": "http"}]}
    ),
    named("v1", "Service", spec={"ports": [{"port": 80}], "type": "NodePort", "sessionAffinity": "ClientIP"}),
    named("v1", "Service", spec={"ports": [{"port": 80}], "type": "LoadBalancer"}),
    named("v1", "Service", spec={"type": "ExternalName", "externalName": "x.example"}),
    named("v1", "ConfigMap"),
    named("v1", "ConfigMap", data={"a": ""}, binaryData={"b": "aGk="}),
    named("v1", "Secret", data={"a": "aGk="}),
    named("v1", "Namespace"),
    named("v1", "Node", status={"capacity": {"cpu": "4", "memory": "8Gi"}}),
    named(
        "v1",
        "Node",
        spec={"taints": [{"key": "a", "effect": "NoSchedule"}]},
        status={"conditions": [{"type": "Ready", "status": "True"}]},
    ),
    named(
        "v1",
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    named(
        "v1",
        "PersistentVolume",
        spec={"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}},
    ),
    named(
        "v1",
        "LimitRange",
        spec={
            "limits": [
                {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Mi"}},
                {"type": "Pod", "max": {"cpu": "4"}},
            ]
        },
    ),
    named("v1", "ResourceQuota", spec={"hard": {"cpu": "1000m", "pods": "10"}}),
    named("v1", "ServiceAccount"),
    named("v1", "Endpoints", subsets=[{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]),
    named("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": SELECTOR}),
    named("scheduling.k8s.io/v1", "PriorityClass", value=5),
    named("storage.k8s.io/v1", "StorageClass", provisioner="x.example"),
    named("storage.k8s.io/v1", "CSIDriver", spec={}),
    named("storage.k8s.io/v1", "CSINode", spec={"drivers": [{"name": "d", "nodeID": "n"}]}),
    named("storage.k8s.io/v1", "CSIStorageCapacity", storageClassName="s", capacity="1Gi"),
    named("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "x", "renewTime": "2020-01-01T00:00:00.000000Z"}),
    named(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.1"]}],
        ports=[{"port": 80}],
    ),
    named("node.k8s.io/v1", "RuntimeClass", handler="h"),
    named(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        roleRef={"kind": "ClusterRole", "name": "r"},
        subjects=[{"kind": "User", "name": "u"}],
    ),
    named("rbac.authorization.k8s.io/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    named("resource.k8s.io/v1", "DeviceClass", spec={"selectors": [{"cel": {"expression": "true"}}]}),
    named(
        "resource.k8s.io/v1",
        "ResourceClaim",
        spec={
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": "c"}},
                    {"name": "s", "firstAvailable": [{"name": "t", "deviceClassName": "c", "allocationMode": "All"}]},
                ]
            }
        },
    ),
    named(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        spec={
            "spec": {
                "devices": {
                    "requests": [{"name": "r", "exactly": {"deviceClassName": "c", "tolerations": [{"key": "k"}]}}]
                }
            }
        },
    ),
    named(
        "resource.k8s.io/v1",
        "ResourceSlice",
        spec={
            "driver": "d.example",
            "nodeName": "n",
            "pool": {"name": "p", "resourceSliceCount": 1, "generation": 0},
            "devices": [{"name": "x", "capacity": {"memory": {"value": "1024Mi"}}}],
        },
    ),
    named(
        "events.k8s.io/v1",
        "Event",
        eventTime="2020-01-01T00:00:00.000000Z",
        reportingController="x.example/c",
        reportingInstance="i",
        action="a",
        reason="r",
        type="Normal",
        regarding={"kind": "Pod", "name": "p", "namespace": "default"},
    ),
    named(
        "v1",
        "Event",
        involvedObject={"kind": "Pod", "name": "p", "namespace": "default"},
        reason="r",
        message="m",
        type="Normal",
        firstTimestamp="2020-01-01T02:00:00+02:00",
    ),
    named(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        metadata={"name": "things.example.com"},
        spec={
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    ),
]
