"""The network: nodes in any order, of any number; a node that does not fit changes nothing; ONNX says the same."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from podium.cluster import Nodes
from podium.framework import Cycle, PluginError
from podium_lab.learned import LearnedScore
from podium_lab.learned.network import NetworkWeights, PlacementNetwork
from podium_lab.learned.onnx_file import checked_onnx, read_graph
from podium_lab.learned.policy_file import PolicyError, decoded, encoded
from podium_plugins.gpu.terms import GROUPS, TERMS
from tests.podium.plugins.ask import raw_scores
from tests.podium_lab.learned.policies import network_policy, random_network, random_policy, written
from tests.podium_plugins.gpu_share.gpu_worlds import gpu_node, gpu_pod
from tools.kit.builders import make_cluster, make_plugin

NODES = [("n1", 8, 96, "T4"), ("n2", 2, 32, "P100"), ("n3", 4, 16, "G2"), ("n4", 1, 8, "T4")]


def terms(seed: int, nodes: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(seed).normal(size=(len(TERMS), nodes))


@pytest.mark.parametrize("nodes", [1, 2, 64, 5000])
def test_permuted_nodes_get_permuted_corrections(nodes: int) -> None:
    network, given = PlacementNetwork(random_network(1)), terms(2, nodes)
    order = np.random.default_rng(3).permutation(nodes)
    for group in range(len(GROUPS)):
        found = network.corrections(given, group)
        assert np.abs(network.corrections(given[:, order], group) - found[order]).max() < 1e-12
        assert nodes == 1 or found.std() > 0.001


def test_other_nodes_make_a_difference() -> None:
    network, given = PlacementNetwork(random_network(1)), terms(2, 10)
    assert network.corrections(given, 1)[:5].tolist() != network.corrections(given[:, :5], 1).tolist()


def test_without_a_last_layer_nothing_is_corrected() -> None:
    given = random_network(4)
    zeros = tuple(tuple(0.0 for _ in row) for row in given.last)
    network = PlacementNetwork(msgspec.structs.replace(given, last=zeros))
    assert not network.corrections(terms(1, 20), 2).any()


def world(nodes: list[tuple[str, int, int, str]], file: Path, **args: Any) -> dict[str, int]:
    cluster = make_cluster([gpu_node(name, gpus, cpu=cpu, model=model) for name, gpus, cpu, model in nodes])
    known = [{"cpu": 4, "gpuCount": 1, "gpuMilli": 500, "pods": 4}]
    plugin = make_plugin(LearnedScore, cluster, policy=str(file), knowledge=known, **args)
    assert (plugin._onnx is not None) == (args.get("runtime") == "onnx")
    found = plugin.score(Cycle(gpu_pod("arrives", 500, 1, cpu=4), cluster), Nodes(cluster, cluster.order.rows))
    assert not plugin.guard.fallbacks.total() - plugin.guard.fallbacks[""]
    return {cluster.names[row]: int(score) for row, score in zip(cluster.order.rows.tolist(), found, strict=True)}


def test_a_node_that_does_not_fit_changes_no_score(tmp_path: Path) -> None:
    file = written(tmp_path / "policy.json", network_policy(1))
    before = world(NODES, file)
    after = world([*NODES, ("no-gpu", 0, 96, "")], file)
    assert after.pop("no-gpu") == 0
    assert after == before
    assert before != world(NODES, written(tmp_path / "linear.json", random_policy(1)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"first": ((1.0, 2.0),)}, "network.first: must have 1 rows of 33 numbers"),
        ({"last": ((1.0,),) * 3}, "network.last: must have 4 rows of 3 numbers"),
        ({"second": ()}, "network: needs 1 to 256 units"),
        ({"second_bias": (1.0, float("inf"), 0.0)}, "network.secondBias: some number is not finite"),
    ],
)
def test_networks_that_make_no_sense_are_refused(change: dict[str, Any], said: str) -> None:
    network = msgspec.structs.replace(random_network(1), **change)
    assert any(said in each for each in network.problems())


def test_a_policy_says_whether_it_has_a_network() -> None:
    network = network_policy(1)
    assert decoded(encoded(network), "it").network == network.network
    with pytest.raises(PolicyError, match="a policy of kind network has one"):
        decoded(encoded(msgspec.structs.replace(network, kind="linear")), "it")
    with pytest.raises(PolicyError, match="a policy of kind network has one"):
        decoded(encoded(msgspec.structs.replace(random_policy(1), kind="network")), "it")


def test_another_kind_of_policy_in_the_file_is_not_used_until_the_next_start(tmp_path: Path) -> None:
    file = written(tmp_path / "policy.json", random_policy(1))
    cluster = make_cluster([gpu_node(name, gpus, cpu=cpu, model=model) for name, gpus, cpu, model in NODES])
    plugin = make_plugin(LearnedScore, cluster, policy=str(file), knowledge=[{"cpu": 4, "pods": 1}])
    raw_scores(plugin, gpu_pod("a", 500, 1, cpu=4), cluster)
    assert not plugin.guard.fallbacks["schema"]
    written(file, network_policy(1))
    raw_scores(plugin, gpu_pod("b", 500, 1, cpu=4), cluster)
    assert plugin.guard.fallbacks.get("schema") == 1


# ONNX

needs_onnx = pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="onnx is not installed")
needs_runtime = pytest.mark.skipif(
    importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None,
    reason="onnx and onnxruntime are not installed",
)


@needs_runtime
@pytest.mark.parametrize("seed", range(3))
def test_onnxruntime_gives_the_scores_of_numpy(seed: int, tmp_path: Path) -> None:
    from podium_lab.learned.onnx_file import OnnxScore
    from podium_lab.learning.onnx_export import onnx_bytes

    policy = decoded(encoded(network_policy(seed)), "it")
    (tmp_path / "policy.onnx").write_bytes(onnx_bytes(policy))
    onnx, network = OnnxScore(tmp_path / "policy.onnx", policy), policy.correction()
    assert network is not None
    rng = np.random.default_rng(seed)
    for _ in range(334):  # a thousand states, three policies
        given = rng.normal(size=(len(TERMS), int(rng.integers(1, 60))))
        group = int(rng.integers(len(GROUPS)))
        fits = np.asarray(rng.random(given.shape[1]) < 0.8)
        fits[0] = True
        wanted = policy.matrix()[group] @ given[:, fits] + network.corrections(given[:, fits], group)
        found = onnx.scores(given, group, fits)
        assert np.abs(found[fits] - wanted).max() < 1e-4
        assert found[fits].argmax() == wanted.argmax()
        assert (found[~fits] == -1e8).all()


@needs_runtime
def test_the_plugin_scores_on_onnxruntime(tmp_path: Path) -> None:
    from podium_lab.learning.onnx_export import onnx_bytes

    file = written(tmp_path / "policy.json", network_policy(1))
    with pytest.raises(PluginError, match=r"policy\.onnx: cannot be read"):
        world(NODES, file, runtime="onnx")
    policy = decoded(file.read_bytes(), "it")
    (tmp_path / "policy.onnx").write_bytes(onnx_bytes(policy))
    assert world(NODES, file, runtime="onnx") == world(NODES, file)
    written(file, network_policy(2))
    with pytest.raises(PluginError, match="is not of this policy"):
        world(NODES, file, runtime="onnx")


@needs_onnx
def test_graphs_with_more_than_a_policy_needs_are_refused() -> None:
    onnx: Any = pytest.importorskip("onnx")
    from podium_lab.learning.onnx_export import onnx_bytes

    content = onnx_bytes(network_policy(1))
    assert checked_onnx(content, "it")["policy"] == "test"
    model = onnx.load_from_string(content)
    model.graph.node[0].op_type = "Loop"
    with pytest.raises(PolicyError, match="uses the operator Loop"):
        checked_onnx(model.SerializeToString(), "it")
    model = onnx.load_from_string(content)
    model.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    with pytest.raises(PolicyError, match="weights in another file"):
        checked_onnx(model.SerializeToString(), "it")


def varied(change: Callable[[Any, Any], None]) -> bytes:
    """The graph of a policy with something changed; `change` gets onnx and the graph."""
    onnx: Any = pytest.importorskip("onnx")
    from podium_lab.learning.onnx_export import onnx_bytes

    model = onnx.load_from_string(onnx_bytes(network_policy(1)))
    change(onnx, model.graph)
    content: bytes = model.SerializeToString()
    return content


def chained(operator: str, count: int, inputs: Callable[[str], list[str]], **attributes: Any) -> Callable[..., None]:
    """A chain of steps, each of which takes what the last has made."""

    def change(onnx: Any, graph: Any) -> None:
        last = "linear"
        for at in range(count):
            graph.node.append(onnx.helper.make_node(operator, inputs(last), [f"more{at}"], **attributes))
            last = f"more{at}"

    return change


def crossed(onnx: Any, graph: Any) -> None:
    """Every node times every node."""
    graph.node.append(onnx.helper.make_node("Transpose", ["linear_score"], ["row"]))
    graph.node.append(onnx.helper.make_node("MatMul", ["linear_score", "row"], ["square"]))


def overlong(_: Any, graph: Any) -> None:
    graph.initializer[0].dims[0] = 1 << 40


def shadowing(_: Any, graph: Any) -> None:
    graph.initializer[0].name = "nodes"


def first_is(**changes: Any) -> Callable[[Any, Any], None]:
    def change(_: Any, graph: Any) -> None:
        for name, value in changes.items():
            setattr(graph.node[0], name, value)

    return change


@needs_onnx
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (chained("Concat", 60, lambda last: [last, last], axis=1), "grows beyond what a policy needs"),
        (chained("Concat", 60, lambda last: [last, last], axis=0), "grows beyond what a policy needs"),
        (chained("Add", 600, lambda last: [last, last]), "has more than 500 steps"),
        (chained("MatMul", 1, lambda last: [last, last]), "has a MatMul whose inputs do not fit"),
        (chained("Unsqueeze", 5, lambda last: [last, "axis_terms"]), "has more than 4 dimensions in more2"),
        (chained("Cast", 1, lambda last: [last], to=8), "has a Cast to something else than numbers"),
        (crossed, "compares nodes with each other in square"),
        (overlong, "has weights that are not as many as they should be: axis_nodes"),
        (shadowing, "has weights in place of the input nodes"),
        (first_is(op_type="Lo\x1b[2Jop"), r"uses the operator Lo\\x1b\[2Jop, which is refused"),
        (first_is(op_type="x" * 9000), r"uses the operator x{60}, which is refused"),
        (first_is(domain="com.microsoft"), "uses the operator Unsqueeze, which is refused"),
        (lambda _, graph: graph.node[0].input.append("later"), "uses later before it is there"),
        (lambda _, graph: graph.node[1].output.append("linear"), "has a Transpose with several results"),
        (lambda _, graph: graph.node.pop(), "does not give one score for each node"),
        (lambda _, graph: graph.node.append(graph.node[0]), "has two tensors called"),
    ],
)
def test_a_graph_that_is_no_score_or_grows_is_refused_before_it_runs(
    change: Callable[[Any, Any], None], sentence: str
) -> None:
    with pytest.raises(PolicyError, match=f"^it: {sentence}") as refused:
        checked_onnx(varied(change), "it")
    assert len(str(refused.value)) < 200


@needs_onnx
@pytest.mark.parametrize("key", [b"\x22", b"\xa2\x00", b"\xa2\x80\x80\x80\x00", b"\xa2\x80\x80\x80\x10"])
def test_an_operator_is_seen_however_the_key_of_its_field_is_written(key: bytes) -> None:
    step = key + b"\x04Loop"
    graph = b"\x0a" + bytes([len(step)]) + step
    with pytest.raises(PolicyError, match=r"it: (uses the operator Loop|is no ONNX file)"):
        checked_onnx(b"\x3a" + bytes([len(graph)]) + graph, "it")


@needs_onnx
def test_what_runs_is_what_was_read() -> None:
    content = varied(lambda _onnx, _graph: None)
    unknown = b"\xa2\x7d\x03abc"  # a field that onnx does not know
    assert read_graph(content + unknown, "it").content == read_graph(content, "it").content


@needs_onnx
@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"{}", b"\x3a\x7f", b"\x3a\x02\x0a\x09"])
def test_what_is_no_graph_is_refused(content: bytes) -> None:
    with pytest.raises(PolicyError, match=r"it: (is no ONNX file|has no graph)"):
        checked_onnx(content, "it")


@needs_onnx
def test_the_metadata_of_a_graph_are_read() -> None:
    assert checked_onnx(b"\x3a\x07\x0a\x05\x22\x03Add\x72\x06\x0a\x01a\x12\x01b", "it") == {"a": "b"}
    with pytest.raises(PolicyError, match="uses the operator Adx"):
        checked_onnx(b"\x3a\x07\x0a\x05\x22\x03Adx", "it")


def test_weights_are_read_from_json_as_they_were_written() -> None:
    given = random_network(5)
    assert msgspec.json.decode(msgspec.json.encode(given), type=NetworkWeights) == given


def test_a_graph_with_text_that_is_not_utf_8_is_no_onnx_file() -> None:
    pytest.importorskip("onnx")
    with pytest.raises(PolicyError, match="f: is no ONNX file"):
        checked_onnx(b"\x3a\x07\x0a\x05\x22\x03\xff\xfe\xfd", "f")
