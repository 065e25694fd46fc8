"""Lists everything that reads text from outside, with good examples and the errors it may answer bad ones with."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kubecel import DeviceSelectorError, compile_selector, selectable
from kubecel.quantity import QuantityError, canonical, milli
from podium.client.api_errors import AccessError
from podium.client.exec_plugin import ExecCommand, ExecCredentials
from podium.client.loading import load_access
from podium.config import ConfigError, load_config
from podium.config.durations import Duration
from podium.extender.request_parsing import (
    BadRequestError,
    read_args,
    read_args_of_any_shape,
    read_binding_args,
    read_pod,
)
from podium.framework.extender import ExtenderError
from podium.kube import DecodeError, LabelSelector, Node, NodeSelector, Pod, decode_documents, decode_json
from podium.kube.documents import DocumentError, read_documents, read_json, read_yaml
from podium.kube.selector import SelectorError, compile_label_selector, compile_node_selector
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources.kubernetes import MetricsServer
from podium.load.sources.load_watcher import LoadWatcher
from podium.load.sources.matching import NodeIndex
from podium.load.sources.prometheus import read_vector, result_of
from podium.load.sources.sample import SourceError
from podium.plugins import load_registry
from podium.run.extender_messages import binding_result, chosen_victims, filter_result, host_scores
from podium.run.shadow import read_findings
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.http.protobuf import ProtobufError
from podium_cluster.apiserver.http.protobuf import decode as decode_protobuf
from podium_cluster.apiserver.kinds import POD as POD_KIND
from podium_cluster.apiserver.presentation.json_path import JsonPath, JsonPathError
from podium_cluster.apiserver.schema.correlation import Correlated
from podium_cluster.apiserver.schema.validation_rules import rule_problems, rule_tree
from podium_cluster.apiserver.store.database import DatabaseError
from podium_cluster.apiserver.store.selection import parse_label_selector, selection
from podium_cluster.apiserver.writes.patch import (
    applied_configuration,
    json_operations,
    merge_document,
    strategic_document,
)
from podium_cluster.apiserver.writes.patches.json_patch import json_patch, merge_patch
from podium_cluster.up.manifests import WorkloadError, read_workload
from podium_lab.learned.onnx_file import checked_onnx
from podium_lab.learned.policy_file import PolicyError, decoded, path_of
from podium_lab.learned.seen_pods import read_classes
from podium_lab.learning.replay import ReplayError, replayed
from podium_lab.model_decision_log import sum_up
from podium_lab.online.learner import KEY, OnlineLearner, SavedModel, SavedState, UnrewardedPod, encode_state
from podium_lab.reward import RewardBiasArgs, Rewards
from podium_plugins.peaks import MODEL_FILE, read_models
from podium_plugins.qos.history import read_history
from tools.bench.report import NotARunError, load_run
from tools.fuzz import outsiders

POD = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "labels": {"app": "web"}, "annotations": {}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                    }
                },
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {"matchLabels": {}}}}
                    ]
                },
            },
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        },
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
    }
).encode()
NODE = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"zone": "a"}, "annotations": {"mean-free-cpu": "1.5"}},
        "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "unschedulable": False},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 110}, "images": [{"names": ["i"]}]},
    }
).encode()  # fmt: skip
MANIFESTS = (
    b"# c\napiVersion: v1\nkind: Pod\nmetadata: &m {name: a, labels: {x: z}}\n---\n{apiVersion: v1, kind: Node}\n"
)
KUBECONFIG = b"""apiVersion: v1
kind: Config
current-context: c
clusters: [{name: k, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true, proxy-url: "http://p:1"}}]
users: [{name: u, user: {token: secret, as: someone, exec: {apiVersion: client.authentication.k8s.io/v1, command: x}}},
  {name: w, user: {username: a, password: b, client-certificate-data: aGk=, client-key-data: aGk=}}]
contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]
"""
CONFIG = b"""apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 8
leaderElection: {leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s}
profiles:
- schedulerName: a
  plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 2}], disabled: [{name: "*"}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  - name: TargetLoadPacking
    args: {targetUtilization: 40, defaultRequests: {cpu: 1}}
extenders: [{urlPrefix: "http://127.0.0.1:1", filterVerb: f, weight: 1, nodeCacheCapable: true, httpTimeout: 2s}]
"""
VECTOR = (
    b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"n1"},"value":[1,"2.5"]}]}}'
)
FILTERED = b'{"Nodes":null,"NodeNames":["a"],"FailedNodes":{"b":"no"},"FailedAndUnresolvableNodes":{},"Error":""}'
VICTIMS = b'{"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"u"}],"NumPDBViolations":1}}}'
BINDING = b'{"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"n"}'
ARGS = b'{"Pod":' + POD + b',"Nodes":null,"NodeNames":["n1"]}'
PROTOBUF = bytes.fromhex("6b387300") + b'\n\t\n\x02v1\x12\x03Pod\x12\x14\n\x12\n\x03web\x12\x00\x1a\x04shop"\x00*\x00'
EXEC_CREDENTIAL = (
    b'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t",'
    b'"expirationTimestamp":"2026-01-31T12:00:00Z"}}'
)
LOAD_WATCHER = (
    b'{"timestamp":1,"window":{"duration":"15m","start":1,"end":2},"source":"x","data":{"NodeMetricsMap":{"n1":'
    b'{"metrics":[{"name":"host.cpu","type":"CPU","operator":"AVG","rollup":"","value":12.5}],"tags":{}}}}}'
)
NODE_METRICS = (
    b'{"kind":"NodeMetricsList","items":[{"metadata":{"name":"n1"},"timestamp":"2026-01-31T12:00:00Z",'
    b'"window":"20s","usage":{"cpu":"250m","memory":"1Gi"}}]}'
)
ONLINE_STATE = encode_state(
    SavedState(
        features=("one", "cpu"),
        classes=("a",),
        models=(
            SavedModel(
                type="",
                rewards=3,
                recent_error=0.1,
                usual_error=0.1,
                squared_error=0.01,
                a=((2.0, 0.5), (0.5, 1.0)),
                b=(1.0, 0.25),
            ),
        ),
    )
).encode()
REPLAY = json.dumps(
    [
        {"list": "x", "policy": policy, "seed": seed, "ties": "fixed", "arrived_pct": 100, "gpu_allocation_pct": 95.5}
        for policy in ("fill", "BestFit")
        for seed in (1, 2)
    ]
).encode()
CLASSES = b'[{"cpu": "2", "gpuCount": 1, "gpuMilli": 500, "gpuCardModels": ["T4"], "pods": 3}]'
PATCH = b'[{"op":"test","path":"/a/0","value":1},{"op":"move","from":"/b","path":"/a/-"},{"op":"remove","path":"/a/0"}]'
MERGE = b'{"metadata":{"labels":{"a":null}},"spec":{"containers":[{"name":"c","$patch":"delete"}]}}'
REWARDS = b"web\x00node-a 0.950000 12 2026-01-31T12:00:00Z\nnode-b 1 1 x\n"
FINDING = b'{"level":"info","shadow":{"pod":"d/p","outcome":"differs","podium":"a","other":"b","points":3}}\n'
MODELS = b'{"n1": {"k0": 1.0, "k1": 2.0, "k2": 0.5}}'


class Reader(NamedTuple):
    """Something that reads bytes, examples of what it reads, and the errors with which it refuses."""

    read: Callable[[bytes], object]
    seeds: Sequence[bytes]
    errors: tuple[type[Exception], ...]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _in_a_file(read: Callable[[Path], object], suffix: str = ".yaml") -> Callable[[bytes], object]:
    def work(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"input{suffix}"
            file.write_bytes(data)
            return read(file)

    return work


def _device_selector(data: bytes) -> object:
    return compile_selector(_text(data)[:10_240]).matches(selectable("d", {"n": 3}, {"m": 10**18}))


def _rule(data: bytes) -> object:
    """A rule, and the expression of its message, that are whatever the text says."""
    rule = {"rule": _text(data), "messageExpression": _text(data[::-1]), "fieldPath": _text(data[:40])}
    parts = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 10}
    size = {"x-kubernetes-int-or-string": True}
    schema = {"type": "object", "properties": {"parts": parts, "size": size}, "x-kubernetes-validations": [rule]}
    list(rule_problems(schema, "schema"))
    tree = rule_tree(schema)
    new, old = {"parts": ["b", "a"], "size": 1}, {"parts": ["a"], "size": "1"}
    return tree.causes(new, old, Correlated(new, old, schema)) if tree else None


@cache
def _registry() -> Any:
    return load_registry()


def _selectors(data: bytes) -> None:
    compile_label_selector(decode_json(LabelSelector, data))


def _node_selectors(data: bytes) -> None:
    terms = compile_node_selector(decode_json(NodeSelector, data))
    terms.matches({"a": "b"}, "n1")


def _quantity(data: bytes) -> None:
    milli(_text(data))
    canonical(_text(data))


def _json_patch(data: bytes) -> None:
    json_patch({"a": [1, 2], "b": {"c": "d"}}, json_operations(data))


def _patches(data: bytes) -> None:
    for read in (strategic_document, applied_configuration):
        with suppress(StatusError):
            read(data)
    merge_patch({"metadata": {"labels": {"a": "b"}}, "spec": 1}, merge_document(data))


def _vector(data: bytes) -> None:
    samples = result_of(SourceSettings(address="http://p:9090"), 200, data, "vector")
    asyncio.run(read_vector(samples, lambda labels: labels.get("instance"), "sum", 0.0))


class _Answers:
    """A server and an API that give one answer to everything."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def ask(self, _method: str, _path: str) -> tuple[int, bytes]:
        return 200, self._body

    async def get(self, path: str, *, timeout: float | None = None) -> bytes:
        return self._body


def _load_watcher(data: bytes) -> None:
    source = SourceSettings(kind="load-watcher", address="http://w:2020")
    watcher = LoadWatcher(source)
    watcher._server = _Answers(data)  # type: ignore[assignment]
    asyncio.run(watcher.ask([Series(source=source, query="CPU/AVG")], _nodes(), 0.0))


def _metrics_server(data: bytes) -> None:
    source = SourceSettings(kind="metrics-server")
    wanted = [Series(source=source, query=query) for query in ("CPU/Latest", "Memory/Latest")]
    asyncio.run(MetricsServer(source, _Answers(data)).ask(wanted, _nodes(), 0.0))


def _nodes() -> NodeIndex:
    return NodeIndex([decode_json(Node, NODE)])


def _exec_credentials(data: bytes) -> None:
    ExecCredentials(ExecCommand("x", [], api_version="client.authentication.k8s.io/v1"), origin="f")._parse(data)


def _rewards(data: bytes) -> None:
    name, _, table = _text(data).partition("\x00")
    rewards = Rewards(RewardBiasArgs())
    rewards.restore({name: table}, 1.8e9)
    rewards.save(1.8e9)


def _online_state(data: bytes) -> None:
    """As it is, and with the checksum that it should have."""
    texts = [_text(data)]
    with suppress(DocumentError, msgspec.ValidationError):
        texts.append(encode_state(msgspec.convert(read_json(data), SavedState)))
    for text in texts:
        learner = OnlineLearner(("one", "cpu"), forgetting=0.99, within=3600.0)
        learner.restore({KEY: text}, 0.0)
        learner.placed("a", UnrewardedPod("", "n", np.array([1.0, 0.5]), 0.0))
        learner.heard("a", "0.5", False, 0.0)
        for bandit in learner.models.values():
            bandit.model()
        learner.save(0.0)


def _reward(data: bytes) -> None:
    learner = OnlineLearner(("one", "cpu"), forgetting=0.99, within=3600.0)
    learner.placed("a", UnrewardedPod("", "n", np.array([1.0, 0.5]), 0.0))
    learner.heard("a", _text(data), False, 0.0)
    assert 0 <= learner.sum_of_rewards <= 1


def _answers_of_extenders(data: bytes) -> None:
    for read in (
        lambda: filter_result(data, by_name=True),
        lambda: filter_result(data, by_name=False),
        lambda: host_scores(data),
        lambda: chosen_victims(data),
        lambda: binding_result(data),
    ):
        with suppress(ExtenderError):
            read()


def _requests_of_kube_scheduler(data: bytes) -> None:
    for read in (read_args, read_args_of_any_shape, read_binding_args, read_pod):
        with suppress(BadRequestError):
            read(data)


READERS: dict[str, Reader] = {
    "JSON": Reader(read_json, [POD, NODE, PATCH], (DocumentError,)),
    "YAML": Reader(read_yaml, [MANIFESTS, POD, KUBECONFIG, CONFIG], (DocumentError,)),
    "documents": Reader(lambda data: list(read_documents(data, "f")), [MANIFESTS, POD, NODE + POD], (DocumentError,)),
    "objects in files": Reader(lambda data: decode_documents(data, "f"), [MANIFESTS, POD, NODE], (DecodeError,)),
    "pods": Reader(lambda data: decode_json(Pod, data), [POD], (DecodeError,)),
    "nodes": Reader(lambda data: decode_json(Node, data), [NODE], (DecodeError,)),
    "kubeconfigs": Reader(_in_a_file(lambda file: load_access(str(file))), [KUBECONFIG], (AccessError,)),
    "workloads": Reader(_in_a_file(read_workload), [MANIFESTS, POD], (WorkloadError,)),
    "workloads in JSON": Reader(_in_a_file(read_workload, ".json"), [POD, NODE], (WorkloadError,)),
    "configurations": Reader(lambda data: load_config(_text(data), "f", _registry()), [CONFIG], (ConfigError,)),
    "quantities": Reader(_quantity, [b"100m", b"1.5Gi", b"1e3", b"-0.1u"], (QuantityError,)),
    "durations": Reader(lambda data: Duration.parse(_text(data)), [b"1h2m3.5s", b"-1us", b"0"], (ValueError,)),
    "label selectors": Reader(
        _selectors,
        [b'{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"NotIn","values":["v"]}]}'],
        (SelectorError, DecodeError),
    ),
    "node selectors": Reader(
        _node_selectors,
        [b'{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}]}'],
        (SelectorError, DecodeError),
    ),
    "selectors in queries": Reader(
        lambda data: parse_label_selector(_text(data)), [b"a=b,c!=d,e in (f,g),!h", b"x notin (y),z>1"], (StatusError,)
    ),
    "field selectors in queries": Reader(
        lambda data: selection(POD_KIND, "", _text(data)), [b"spec.nodeName=a,metadata.name!=b\\,c"], (StatusError,)
    ),
    "JSON paths": Reader(
        lambda data: JsonPath(_text(data)).find({"a": [{"b": 1}]}),
        [b".a[?(@.b == 1)].b", b".a['b\\.c'][0][1:2:3].*[*]"],
        (JsonPathError,),
    ),
    "device selectors": Reader(
        _device_selector,
        [
            b'device.attributes["d"].n > 2 && device.driver.matches("a+")',
            b'device.capacity["d"].m.isGreaterThan(quantity("1Gi")) || [1, 2].exists(x, x * 2 == 4)',
        ],
        (DeviceSelectorError,),
    ),
    "rules of custom kinds": Reader(
        _rule,
        [
            b"self.parts.all(p, p.size() < 3) && (!has(self.size) || self.size == oldSelf.size)",
            b"self.parts == oldSelf.parts + ['b'] || self.size > 1 || self.size.matches('^1+$')",
            b"'%s is not %d'.format([self.parts, 3])",
        ],
        (),
    ),
    "QoS histories": Reader(
        lambda data: read_history(_text(data)), [b'{"at": 5.0, "slots": [[1, 0, 2, 0, 1, 1]]}'], ()
    ),
    "decision logs": Reader(
        lambda data: sum_up(data.splitlines()),
        [b'{"source": "model"}\n{"model": ["a"], "fallback": ["a", "b"], "tau": 0.5, "seconds": 0.001}'],
        (),
    ),
    "states of OnlineScore": Reader(_online_state, [ONLINE_STATE], ()),
    "rewards in annotations": Reader(_reward, [b"0.5", b"1", b"1e-3"], ()),
    "replays": Reader(replayed, [REPLAY], (ReplayError,)),
    "classes of pods": Reader(_in_a_file(lambda path: read_classes(str(path)), ".json"), [CLASSES], (PolicyError,)),
    "graphs of policies": Reader(
        lambda data: checked_onnx(data, "f"),
        [b"\x3a\x07\x0a\x05\x22\x03Add\x72\x06\x0a\x01a\x12\x01b", *outsiders.graphs()],
        (PolicyError,),
    ),
    "policies": Reader(lambda data: decoded(data, "f"), [path_of("readable").read_bytes()], (PolicyError,)),
    "protobuf": Reader(decode_protobuf, [PROTOBUF], (ProtobufError,)),
    "JSON patches": Reader(_json_patch, [PATCH], (StatusError,)),
    "merge patches": Reader(_patches, [MERGE], (StatusError,)),
    "answers of Prometheus": Reader(_vector, [VECTOR], (SourceError,)),
    "what credential plugins print": Reader(_exec_credentials, [EXEC_CREDENTIAL], (AccessError,)),
    "answers of load-watcher": Reader(_load_watcher, [LOAD_WATCHER], (SourceError,)),
    "answers of metrics-server": Reader(_metrics_server, [NODE_METRICS], (SourceError,)),
    "answers of extenders": Reader(
        _answers_of_extenders, [FILTERED, VICTIMS, b'[{"Host":"a","Score":3}]', b'{"Error":"x"}'], ()
    ),
    "requests of kube-scheduler": Reader(_requests_of_kube_scheduler, [ARGS, BINDING, POD], ()),
    "refusals of the API": Reader(
        outsiders.status, [b'{"kind":"Status","message":"m","code":409}', *outsiders.STATUSES], ()
    ),
    "packed answers of the API": Reader(outsiders.packed_answer, [NODE, b'{"items":[]}'], ()),
    "answers on the wire": Reader(outsiders.wire_answer, outsiders.WIRE, ()),
    "databases": Reader(outsiders.database, [outsiders.stored()[0]], (DatabaseError,)),
    "log lines": Reader(outsiders.log_line, outsiders.MESSAGES, ()),
    "names on pages": Reader(outsiders.name_on_pages, outsiders.NAMES, ()),
    "shadow logs": Reader(lambda data: list(read_findings(_text(data).splitlines())), [FINDING], ()),
    "rewards": Reader(_rewards, [REWARDS], ()),
    "power models": Reader(_in_a_file(lambda file: read_models({MODEL_FILE: str(file)})), [MODELS], (ValueError,)),
    "bench reports": Reader(lambda data: load_run(_text(data), "f"), [b'{"workloads": []}'], (NotARunError,)),
}
