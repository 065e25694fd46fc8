"""What is said about unknown, repeated and mistyped fields: the real API server's words, case by case."""

import copy
import re
from typing import Any

import msgspec
import pytest

from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.schema import DecodingError, schema_of
from podium_cluster.apiserver.schema.fields import type_names
from tools.testbed.apiclient import ApiError
from tools.testbed.cluster import ControlPlane

SPEC = """
"nodeName":5|"priority":"5"|"priority":5.5|"priority":5.0|"priority":1e2|"priority":99999999999|"hostNetwork":"x"
"nodeSelector":[]|"nodeSelector":{"a":5}|"tolerations":{}|"tolerations":[5]|"affinity":"a"|"affinity":{"nodeAffinity":[]}
"tolerations":[{"tolerationSeconds":"a"}]|"activeDeadlineSeconds":true|"nodeName":{}|"overhead":{"cpu":"1x"}
"nodeName":null,"tolerations":null,"affinity":null,"priority":null,"hostNetwork":null,"nodeSelector":{"a":null}
"topologySpreadConstraints":[{"maxSkew":"x"}]|"overhead":{"cpu":true}|"overhead":{"cpu":{}}|"overhead":{"cpu":""}
"overhead":[]|"foo":1,"nodeName":5|"NodeName":"x"|"nodename":"x"|"a":1,"a":2,"foo":{"x":1,"x":2}
"tolerations":[{},{"a":1,"b":2,"key":"x","key":"y"}]|"nodeSelector":{"a":"b","a":"c"}|"restartPolicy":5
"volumes":[{"hostPath":5}]|"volumes":[{"hostPath":{"type":5}}]|"volumes":[{"emptyDir":{"sizeLimit":"x"}}]
"ephemeralContainers":[{"image":5}]|"volumes":[{"configMap":{"name":5}}]|"securityContext":{"fsGroup":"x"}
"nodeName":""|"hostNetwork":0|"tolerations":""|"nodeName":false|"affinity":[]|"affinity":""|"affinity":0|"priority":""
"hostname":0|"imagePullSecrets":[""]|"readinessGates":[[]]|"dnsConfig":{"options":[{"name":5}]}
"topologySpreadConstraints":[{"matchLabelKeys":[1]}]|"hostname":"\\"a\\":"|"nodeName":"a","nodeName":"b"
"""
METADATA = """
"labels":{"a":5}|"labels":[]|"annotations":{"a":true}|"creationTimestamp":"x"|"creationTimestamp":5|"uid":5
"creationTimestamp":null|"creationTimestamp":""|"creationTimestamp":"2020-01-01"|"bar":2|"name":5
"creationTimestamp":"2020-13-01T00:00:00Z"|"creationTimestamp":"2020-01-41T00:00:00Z"|"resourceVersion":5
"creationTimestamp":"2020-01-01T00:00:00"|"creationTimestamp":"2020-01-01T00:00:00Zx"|"finalizers":"x"
"creationTimestamp":"2020-01-01T25:00:00Z"|"creationTimestamp":"2020-01-01T00:00:00.5+02:00"|"generation":"x"
"ownerReferences":[{"controller":"x"}]|"ownerReferences":[{"uid":5}]|"managedFields":[{"operation":5}]
"""
CONTAINER = """
"ports":[{"containerPort":"80"}]|"livenessProbe":{"httpGet":{"port":1.5}}|"livenessProbe":{"httpGet":{"port":{}}}
"livenessProbe":{"httpGet":{"port":true}}|"resources":{"limits":{"cpu":"abc"}}|"resources":{"limits":"abc"}
"env":[{"name":"x","value":5}]|"command":"x"|"command":[5]|"command":["a",[]]|"livenessProbe":{"exec":{"command":5}}
"livenessProbe":{"exec":5}|"livenessProbe":{"foo":1,"exec":{"x":1}}|"lifecycle":{"preStop":{"exec":5}}
"env":[{"valueFrom":{"configMapKeyRef":{"name":5}}}]|"imagePullPolicy":5|"volumeMounts":[{"mountPropagation":5}]
"resizePolicy":[[]]|"restartPolicy":5|"securityContext":{"capabilities":{"add":[5]}}|"lifecycle":{"stopSignal":5}
"securityContext":{"capabilities":{"add":5}}|"securityContext":{"procMount":5}|"resources":{"requests":{"cpu":[]}}
"""
OBJECT = """
"top":1|"status":{"phase":5}|"status":{"conditions":[{"lastProbeTime":"x"}]}|"status":{"hostIPs":[5],"qosClass":5}
"metadata":[]|"status":"x"|"status":{"containerStatuses":[{"ready":"x"}]}|"apiVersion":"v1"
"""


def texts() -> list[bytes]:
    """A pod with each of the fragments above in its place."""
    found = []
    for place, table in (("spec", SPEC), ("metadata", METADATA), ("container", CONTAINER), ("object", OBJECT)):
        for fragment in table.strip().replace("\n", "|").split("|"):
            added = {
                each: f",{fragment}" if each == place else "" for each in ("spec", "metadata", "container", "object")
            }
            found.append(
                f'{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"{added["metadata"]}}},'
                f'"spec":{{"containers":[{{"name":"c","image":"i"{added["container"]}}}]{added["spec"]}}}{added["object"]}}}'
            )
    return [text.encode() for text in found]


def told(raw: bytes) -> str:
    try:
        problems = schema_of(POD).take(msgspec.json.decode(raw), raw)
    except DecodingError as problem:
        return str(problem)
    return f"strict decoding error: {', '.join(problems)}" if problems else ""


def test_every_mistake_in_a_pod_is_told_in_the_servers_words(control_plane: ControlPlane) -> None:
    client, prefix = control_plane.client, 'Pod in version "v1" cannot be handled as a Pod: '
    for raw in texts():
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        try:
            client.request("POST", "/api/v1/namespaces/default/pods", msgspec.Raw(raw), query=query)
            expected = ""
        except ApiError as refusal:
            expected = refusal.message.removeprefix(prefix) if refusal.code == 400 else ""
        assert without_layout(told(raw)) == without_layout(expected), raw


def without_layout(text: str) -> str:
    """What is said of a time, but not how one is written."""
    return re.sub(r'(parsing time "[^"]*").*', r"\1", text)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (("v1", "ConfigMap"), '"data":{"a":5}', "number into Go struct field ConfigMap.data of type string"),
        (("v1", "Secret"), '"data":{"a":5}', "number into Go struct field Secret.data of type []uint8"),
        (("v1", "Secret"), '"data":{"a":"x"}', "illegal base64 data"),
        (
            ("coordination.k8s.io/v1", "Lease"),
            '"spec":{"renewTime":"2020-01-01T00:00:00Z"}',
            'parsing time "2020-01-01T00:00:00Z"',
        ),
        (
            ("apps/v1", "Deployment"),
            '"spec":{"strategy":{"rollingUpdate":{"maxSurge":[]}}}',
            "array into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (("v1", "PersistentVolumeClaim"), '"spec":{"accessModes":[5]}', "of type v1.PersistentVolumeAccessMode"),
    ],
)
def test_mistakes_in_other_kinds(kind: tuple[str, str], body: str, message: str) -> None:
    raw = f'{{"apiVersion":"{kind[0]}","kind":"{kind[1]}","metadata":{{"name":"a"}},{body}}}'.encode()
    with pytest.raises(DecodingError) as refusal:
        schema_of(built_in(*kind)).take(msgspec.json.decode(raw), raw)
    assert message in str(refusal.value)


def test_unknown_fields_are_dropped_and_named() -> None:
    pod = {"metadata": {"name": "a", "bar": 1}, "spec": {"containers": [{"name": "c", "zip": [{}]}]}, "top": None}
    problems = schema_of(POD).take(pod)
    assert problems == [
        'unknown field "metadata.bar"',
        'unknown field "spec.containers[0].zip"',
        'unknown field "top"',
    ]
    assert pod == {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "resources": {}}]}, "status": {}}


def test_of_a_field_given_twice_the_last_counts() -> None:
    raw = b'{"metadata":{"name":"a","name":"b"},"spec":{"nodeSelector":{"x":"1","x":"2"}}}'
    pod = msgspec.json.decode(raw)
    assert schema_of(POD).take(pod, raw) == ['duplicate field "metadata.name"', 'duplicate field "spec.nodeSelector.x"']
    assert pod["metadata"]["name"] == "b"
    assert pod["spec"]["nodeSelector"] == {"x": "2"}


def test_empty_and_null_values_come_out_as_the_server_writes_them() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "a", "labels": {}, "finalizers": [], "annotations": {"a": ""}},
        "spec": {
            "affinity": {},
            "hostNetwork": False,
            "enableServiceLinks": False,
            "nodeName": "",
            "priority": 0,
            "tolerations": [],
            "overhead": None,
            "containers": [{"name": "c", "stdin": False, "env": [{"name": "X", "value": ""}], "securityContext": {}}],
        },
    }
    assert schema_of(POD).take(pod) == []
    assert pod == {
        "metadata": {"name": "a", "annotations": {"a": ""}},
        "spec": {
            "affinity": {},
            "enableServiceLinks": False,
            "priority": 0,
            "containers": [{"name": "c", "env": [{"name": "X"}], "securityContext": {}, "resources": {}}],
        },
        "status": {},
    }


def test_quantities_and_times_take_their_canonical_form() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "a", "deletionTimestamp": "2020-01-01T01:00:00.75+01:00"},
        "spec": {"containers": [], "overhead": {"cpu": 1.5, "memory": "1024Ki", "pods": 0}},
    }
    assert schema_of(POD).take(pod) == []
    assert pod["metadata"]["deletionTimestamp"] == "2020-01-01T00:00:00Z"
    assert pod["spec"]["overhead"] == {"cpu": "1500m", "memory": "1Mi", "pods": "0"}


def test_what_is_always_written_is_there() -> None:
    node: dict[str, Any] = {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert schema_of(built_in("v1", "Node")).take(node) == []
    assert node["spec"] == {}
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert node["status"]["conditions"][0]["lastTransitionTime"] is None


def test_taking_an_object_twice_changes_nothing() -> None:
    for raw in texts():
        pod = msgspec.json.decode(raw)
        try:
            schema_of(POD).take(pod, raw)
        except DecodingError:
            continue
        once = copy.deepcopy(pod)
        assert schema_of(POD).take(pod) == []
        assert pod == once


def test_every_built_in_kind_has_its_fields() -> None:
    from podium_cluster.apiserver.kinds import BUILT_IN

    assert {(kind.group, kind.version, kind.kind) for kind in BUILT_IN} <= set(type_names())
