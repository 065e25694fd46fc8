"""The object types: wire names, defaults, and the properties that spare callers a detour."""

import msgspec
import pytest

from podium.kube import Node, ObjectMeta, OwnerReference, Pod, PodSpec, PodStatus, StorageClass, Taint, parse_time
from podium.kube.custom_object import CUSTOM_KINDS
from podium.kube.decode import KINDS, decode_json
from podium.kube.meta import format_time
from podium.kube.storage import PersistentVolume, PersistentVolumeClaim, default_class


def test_an_empty_pod_has_the_defaults_of_the_api() -> None:
    pod = decode_json(Pod, b"{}")
    assert pod.namespace == "default"
    assert pod.spec.scheduler_name == "default-scheduler"
    assert pod.priority == 0
    assert pod.node_name == ""
    assert not pod.terminating


def test_a_pod_is_known_by_namespace_and_name_and_a_node_by_name() -> None:
    assert Pod(metadata=ObjectMeta(name="web", namespace="shop")).key == "shop/web"
    assert Node(metadata=ObjectMeta(name="n1")).key == "n1"


def test_the_properties_of_a_pod_reach_into_its_parts() -> None:
    metadata = ObjectMeta(
        uid="u1", labels={"a": "b"}, annotations={"c": "d"}, deletion_timestamp="2026-01-31T12:00:00Z"
    )
    pod = Pod(metadata=metadata, spec=PodSpec(node_name="n1", priority=-7), status=PodStatus(phase="Succeeded"))
    assert (pod.uid, pod.labels, pod.annotations) == ("u1", {"a": "b"}, {"c": "d"})
    assert (pod.node_name, pod.priority, pod.terminating, pod.finished) == ("n1", -7, True, True)


def test_the_properties_of_a_node_reach_into_its_parts() -> None:
    node = decode_json(Node, b'{"spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoSchedule"}]}}')
    assert node.unschedulable
    assert node.taints == (Taint(key="k", effect="NoSchedule"),)


def test_the_controller_is_the_owner_that_says_so() -> None:
    owners = (OwnerReference(name="a"), OwnerReference(name="b", controller=True))
    controller = ObjectMeta(owner_references=owners).controller
    assert controller is not None
    assert controller.name == "b"
    assert ObjectMeta(owner_references=owners[:1]).controller is None


def test_names_that_camel_case_gets_wrong_are_read_and_written_right() -> None:
    wire = {
        "spec": {
            "containers": [{"ports": [{"hostIP": "10.0.0.1", "hostPort": 80}]}],
            "hostPID": True,
            "hostIPC": True,
            "volumes": [
                {"awsElasticBlockStore": {"volumeID": "v"}},
                {"gcePersistentDisk": {"pdName": "d"}},
                {"iscsi": {"iqn": "q"}},
                {"azureDisk": {"diskURI": "u"}},
                {"downwardAPI": {}},
                {"scaleIO": {}},
                {"storageos": {}},
            ],
        },
        "status": {"podIP": "10.1.0.1", "hostIP": "10.0.0.1", "qosClass": "Burstable"},
    }
    pod = msgspec.convert(wire, Pod)
    assert msgspec.json.decode(msgspec.json.encode(pod)) == wire
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"


def test_what_scheduling_does_not_read_is_ignored() -> None:
    assert decode_json(Pod, b'{"apiVersion": "v1", "kind": "Pod", "spec": {"dnsPolicy": "None"}}') == Pod()


@pytest.mark.parametrize(("of_kind", "type_"), list(KINDS.items()))
def test_every_kind_decodes_from_nothing_and_is_called_by_its_name(
    of_kind: tuple[str, str], type_: type[msgspec.Struct]
) -> None:
    assert decode_json(type_, b"{}") == type_()
    assert type_.__name__ == ("CustomObject" if of_kind in CUSTOM_KINDS else of_kind[1])


@pytest.mark.parametrize("type_", [PersistentVolume, PersistentVolumeClaim])
def test_the_old_class_annotation_wins_over_the_field(type_: type[PersistentVolume | PersistentVolumeClaim]) -> None:
    annotated = b'{"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}'
    old = annotated + b', "spec": {"storageClassName": "new"}}'
    assert decode_json(type_, old).storage_class_name == "old"
    assert decode_json(type_, b'{"spec": {"storageClassName": "new"}}').storage_class_name == "new"
    assert decode_json(type_, b"{}").storage_class_name == ""


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], None),
        ([("a", "", 1)], None),
        ([("a", "storageclass.kubernetes.io", 1)], "a"),
        ([("a", "storageclass.beta.kubernetes.io", 1), ("b", "storageclass.kubernetes.io", 0)], "a"),
        ([("b", "storageclass.kubernetes.io", 1), ("a", "storageclass.beta.kubernetes.io", 1), ("c", "", 2)], "a"),
    ],
)
def test_of_several_default_classes_the_newest_counts_then_the_first_by_name(
    classes: list[tuple[str, str, int]], expected: str | None
) -> None:
    found = default_class(
        StorageClass(
            metadata=ObjectMeta(
                name=name,
                annotations={f"{domain}/is-default-class": "true"} if domain else {},
                creation_timestamp=format_time(age),
            )
        )
        for name, domain, age in classes
    )
    assert (found and found.name) == expected


def test_times_are_epoch_seconds() -> None:
    assert parse_time("1970-01-01T00:01:00Z") == 60.0
    assert parse_time("1970-01-01T02:00:00.5+02:00") == 0.5
    assert format_time(60.9) == "1970-01-01T00:01:00Z"
    with pytest.raises(ValueError, match="has no zone"):
        parse_time("1970-01-01T00:00:00")
