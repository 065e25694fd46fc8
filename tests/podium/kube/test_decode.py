"""Decoding files and single objects, the sentences that say where one is wrong, and threads that decode at once."""

import subprocess
import sys
import textwrap

import pytest

from podium.kube import DecodeError, Node, Pod, decode_documents, decode_json

RACE = """
import sys, threading, msgspec
from podium.kube.decode import KINDS, read_types

if {read}:
    read_types()
sys.setswitchinterval(1e-7)
ready = threading.Barrier(4)

def decode():
    for kind in dict.fromkeys(KINDS.values()):
        ready.wait()
        for _ in range(20):
            msgspec.json.Decoder(kind).decode(b'{{"metadata": {{"name": "a"}}, "spec": {{"selector": {{}}}}}}')

threads = [threading.Thread(target=decode) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""


def text(block: str) -> str:
    return textwrap.dedent(block).lstrip("\n")


def keys(source: str) -> list[str]:
    return [f"{type(obj).__name__} {obj.key}" for obj in decode_documents(source, "f").objects]


def refusal(source: str) -> str:
    with pytest.raises(DecodeError) as raised:
        decode_documents(source, "f.yaml")
    return str(raised.value)


def test_several_yaml_documents_lists_and_unknown_kinds_in_one_file() -> None:
    decoded = decode_documents(
        text("""
            apiVersion: v1
            kind: Pod
            metadata: {name: a}
            ---
            ---
            apiVersion: apps/v1
            kind: Deployment
            ---
            apiVersion: v1
            kind: List
            items:
            - {apiVersion: v1, kind: Node, metadata: {name: n1}}
            - {apiVersion: apps/v1, kind: Deployment}
            - {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: x}}
        """),
        "f",
    )
    assert [obj.key for obj in decoded.objects] == ["default/a", "n1", "x/r"]
    assert decoded.skipped == {"apps/v1 Deployment": 2}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", []),
        ("# nothing\n", []),
        ('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}', ["Pod default/a"]),
        ('{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}}]}', ["Pod default/a"]),
        ('{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node"}]}', ["Node "]),
        ('{"apiVersion":"v1","kind":"PodList","items":null}', []),
        ('{"apiVersion":"v1","kind":"PodList"}', []),
        ('{"apiVersion":"v1","kind":"Pod"}\n{"apiVersion":"v1","kind":"Node"}\n', ["Pod default/", "Node "]),
        ("apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: n1}\n", ["Node n1"]),
        ("apiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\n", ["CSINode n1"]),
    ],
)
def test_whatever_kubectl_prints_is_read(source: str, expected: list[str]) -> None:
    assert keys(source) == expected


def test_yaml_is_read_the_way_kubernetes_reads_it() -> None:
    (pod,) = decode_documents(
        text("""
            apiVersion: v1
            kind: Pod
            metadata:
              creationTimestamp: 2026-01-31T12:00:00Z
              annotations: {open: 12:30, since: 2026-01-31 12:00:00}
            spec:
              containers:
              - resources: {requests: {cpu: 1, memory: 1e3, example.com/x: 0.5}}
        """),
        "f",
    ).objects
    assert isinstance(pod, Pod)
    assert pod.metadata.creation_timestamp == "2026-01-31T12:00:00Z"
    assert pod.annotations == {"open": "12:30", "since": "2026-01-31 12:00:00"}
    assert pod.spec.containers[0].resources.requests == {"cpu": 1, "memory": 1000, "example.com/x": 0.5}


def test_null_means_not_given_in_a_field_and_zero_inside_a_list_or_map() -> None:
    pod = decode_json(
        Pod,
        b'{"metadata": {"name": "a", "labels": null, "annotations": {"x": null}, "finalizers": [null]},'
        b' "spec": {"schedulerName": null, "containers": [null, {"resources": {"requests": {"cpu": null}}}],'
        b' "affinity": {"nodeAffinity": null}, "tolerations": null}, "status": null}',
    )
    assert pod.labels == {}
    assert pod.annotations == {"x": ""}
    assert pod.metadata.finalizers == ("",)
    assert pod.spec.scheduler_name == "default-scheduler"
    assert len(pod.spec.containers) == 2
    assert pod.spec.containers[1].resources.requests == {"cpu": 0}
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is None


def test_a_broken_field_is_named_even_when_the_object_holds_nulls() -> None:
    with pytest.raises(DecodeError, match=r"^\$\.spec\.priority: expected a whole number, got text$"):
        decode_json(Pod, b'{"metadata": {"labels": null}, "spec": {"priority": "high"}}')


def test_broken_json_off_the_wire_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match=r"^the JSON is broken: "):
        decode_json(Node, b'{"metadata": ')


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[] x", "the JSON is broken: trailing characters"),
        (b'{"metadata": {"labels": null}, "spec": ', "the JSON is broken: it ends too early"),
        (b'{"metadata": 1, "x": "\xff"}', "not UTF-8 text"),
        (b'{"metadata": 1, "x": ' + b"[" * 5000, "nested more than 100 levels deep"),
    ],
)
def test_what_is_wrong_after_the_first_wrong_field_is_a_decode_error_too(data: bytes, problem: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode_json(Pod, data)
    assert str(refused.value) == problem


POD = """
    apiVersion: v1
    kind: Pod
    metadata:
      name: web
      namespace: shop
"""


@pytest.mark.parametrize(
    ("block", "error"),
    [
        (
            POD + "    spec:\n      priority: high\n",
            'f.yaml:7: Pod "shop/web": $.spec.priority: expected a whole number, got text',
        ),
        (
            POD + "      labels:\n        tier: 1\n",
            'f.yaml:7: Pod "shop/web": $.metadata.labels["tier"]: expected text, got a whole number',
        ),
        (
            POD + "    spec:\n      containers: {}\n",
            'f.yaml:7: Pod "shop/web": $.spec.containers: expected a list, got a map',
        ),
        (
            POD + "    spec:\n      overhead:\n        cpu: [1]\n",
            'f.yaml:8: Pod "shop/web": $.spec.overhead["cpu"]: expected a quantity, got a list',
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_told_with_line_object_and_path(block: str, error: str) -> None:
    assert refusal(text(block)) == error


def test_a_bad_quantity_is_told_with_line_object_and_path() -> None:
    source = POD + "    spec:\n      containers:\n      - name: a\n        resources:\n          requests:\n"
    assert refusal(text(source + "            cpu: 1\n            memory: 1GB\n")).startswith(
        'f.yaml:12: Pod "shop/web": $.spec.containers[0].resources.requests.memory: quantity "1GB" cannot be read'
    )


def test_a_resource_name_that_is_no_identifier_is_quoted_in_the_path() -> None:
    source = "apiVersion: v1\nkind: Node\nstatus:\n  allocatable:\n    example.com/gpu: two\n"
    assert refusal(source).startswith('f.yaml:5: Node: $.status.allocatable["example.com/gpu"]: quantity "two"')


@pytest.mark.parametrize(
    ("spec", "line", "path", "problem"),
    [
        (
            "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector:"
            " {matchExpressions: [{key: a, operator: In}]}}]}}",
            7,
            "$.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector",
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:"
            " [{matchExpressions: [{key: a, operator: Gt, values: [x]}]}]}}}",
            7,
            "$.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators,"
            " the value must be an integer",
        ),
        (
            "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference:"
            " {matchFields: [{key: metadata.name, operator: In}]}}]}}",
            7,
            "$.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]",
            "preference.matchFields[0].values: Invalid value: null: must have one element",
        ),
    ],
)
def test_an_impossible_selector_is_told_with_its_path(spec: str, line: int, path: str, problem: str) -> None:
    assert refusal(text(POD + f"    spec:\n      {spec}\n")) == f'f.yaml:{line}: Pod "shop/web": {path}: {problem}'


def test_an_item_of_a_json_list_is_found_by_line() -> None:
    source = text("""
        {"apiVersion": "v1", "kind": "PodList", "items": [
        {},
        {"metadata": {"name": "b"},
         "spec":
           {"priority": "x"}}]}
    """)
    assert refusal(source) == 'f.yaml:5: Pod "b": $.spec.priority: expected a whole number, got text'


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("a: [b\nc: d\n", "f.yaml:2: the YAML is broken: did not find expected ',' or ']'"),
        (
            "a: !!python/name:os.system x\n",
            "f.yaml:1: the YAML is broken: could not determine a constructor for the tag",
        ),
        ('{"apiVersion": "v1",\n"kind": }', "f.yaml:2: the JSON is broken: expecting value"),
        ("kind: Pod\n", "f.yaml:1: the document has no apiVersion; is it a Kubernetes object?"),
        ("a: b\n", "f.yaml:1: the document has no kind; is it a Kubernetes object?"),
        ("- a\n", "f.yaml:1: $: expected a map, got a list"),
        ("apiVersion: v1\nkind: 5\n", "f.yaml:2: $.kind: expected text, got a whole number"),
        ("apiVersion: v1\nkind: PodList\nitems: {}\n", "f.yaml:3: $.items: expected a list"),
        ("apiVersion: v1\nkind: PodList\nitems:\n- 5\n", "f.yaml:4: $.items[0]: expected a map, got a whole number"),
    ],
)
def test_text_that_holds_no_kubernetes_objects_is_refused(source: str, error: str) -> None:
    assert refusal(source).startswith(error)


def test_types_that_were_read_are_decoded_by_several_threads_at_once() -> None:
    """Without `read_types` most of these processes crash."""
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", RACE.format(read=True)], capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr.decode()


ANOTHER = """
import msgspec
from podium.kube.decode import read_types

class Theirs(msgspec.Struct):
    a: int

class Unreadable(msgspec.Struct):
    a: "Missing"

class Last(msgspec.Struct):
    a: int

read_types()
for each in (Theirs, Last):
    each.__annotations__["a"] = str  # too late for a type that was read
    print(msgspec.json.decode(b'{"a": 5}', type=each).a)
"""


def test_types_of_every_package_are_read_and_one_that_cannot_be_stops_none() -> None:
    ran = subprocess.run([sys.executable, "-c", ANOTHER], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("5\n5\n", "")
