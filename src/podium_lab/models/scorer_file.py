"""Writes and reads scorers as ONNX files, and scores nodes with them.

    inputs   nodes float32[B, W, F], pod float32[B, P], global float32[B, G], mask bool[B, W]; B and W are free
    output   scores float32[B, W], larger is better; −1e8 where the mask excludes a node

The features go in raw: the graph scales them, and computes what `set_scorer.forward` does, without the value. The
metadata says for which features the graph was made (`schema`, a hash), how it scales (`scaling`), and where it comes
from: `objective`, `scenarios`, `seed`, `codeVersion`, `evaluation`. A file for other features is refused. One that
names no hash is checked by names and shapes only.

Files come from anywhere, PyTorch for instance. onnxruntime runs them on one thread; where it isn't installed, NumPy
runs those that `onnx_of` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from podium.kube.printable import printable
from podium_lab.models.features import Array, Features
from podium_lab.models.schema import LIMIT, SCHEMA_HASH, F, G, P
from podium_lab.models.set_scorer import LAYERS, NOT_FEASIBLE, SCALING, Weights, forward

LARGEST_FILE: Final = 64_000_000
"""Bytes; a set scorer has about 150,000."""
OPSET: Final = 17
IR_VERSION: Final = 8
MOST_QUOTED: Final = 300
SCHEMA_KEY: Final = "schema"
INPUTS: Final[Mapping[str, tuple[int | None, ...]]] = {
    "nodes": (None, None, F),
    "pod": (None, P),
    "global": (None, G),
    "mask": (None, None),
}
"""The shapes of the inputs; None is free."""
OUTPUT: Final = "scores"


class ScorerFileError(Exception):
    """A file that can't be used: one sentence says why. `reason` is how a fallback is counted for it."""

    def __init__(self, message: str, reason: str = "no_model") -> None:
        super().__init__(message)
        self.reason = reason


def shape_problem(name: str, found: tuple[Any, ...], *, names: Mapping[str, tuple[int | None, ...]] = INPUTS) -> str:
    """What is wrong with the shape of an input or output; empty where nothing is. What isn't a number is free."""
    wanted = {**names, OUTPUT: (None, None)}.get(name)
    if wanted is None:
        return f"has the input {printable(name)}, which Podium doesn't send"
    fits = len(found) == len(wanted) and all(
        want is None or not isinstance(width, int) or width in (-1, want)
        for want, width in zip(wanted, found, strict=True)
    )
    if fits:
        return ""
    shown = ", ".join("any" if want is None else str(want) for want in wanted)
    return f"{name} has the shape {list(found)}, and should have [{shown}]"


class OnnxScorer:
    """A scorer that runs in this process. `warning` says what could not be checked; empty: everything was."""

    def __init__(self, path: Path) -> None:
        """Raises ScorerFileError."""
        content = _content(path)
        session = _session(content, path)
        self._weights: Weights | None = None
        self.metadata: dict[str, str] = {}
        if session is None:
            self.metadata, self._weights = _read_weights(content, path)
            self._session = None
        else:
            self.metadata = dict(session.get_modelmeta().custom_metadata_map)
            self._session = session
            self._inputs = [each.name for each in session.get_inputs()]
            _check_tensors(session, path)
        self.warning = check_schema(self.metadata, str(path))
        self._scaling = _scaling_of(self.metadata)

    def scores(self, features: Features) -> Array:
        """Raw scores, float64[W], of one decision."""
        if self._session is None:
            assert self._weights is not None
            return forward(np, self._weights, features)[0].astype(np.float64)
        given = {
            "nodes": features.nodes[np.newaxis],
            "pod": features.pod[np.newaxis],
            "global": features.globals[np.newaxis],
            "mask": features.mask[np.newaxis],
        }
        found = self._session.run([OUTPUT], {name: given[name] for name in self._inputs})[0]
        return found.astype(np.float64).reshape(-1)

    def share_outside(self, features: Features) -> float:
        """The share of the nodes' features that scaling clips; 0 where the file doesn't say how it scales."""
        if self._scaling is None:
            return 0.0
        mean, deviation = self._scaling
        far = np.abs((features.nodes - mean) / deviation) > LIMIT
        return float(far.mean()) if far.size else 0.0


def check_schema(metadata: Mapping[str, str], source: str) -> str:
    """A warning where the metadata names no schema; raises ScorerFileError where it names another one."""
    found = metadata.get(SCHEMA_KEY, "")
    if not found:
        return f"{source}: names no feature schema; only names and shapes were checked"
    if found != SCHEMA_HASH:
        mismatch = f"{source}: was made for the feature schema {printable(found[:12])}, and this Podium has"
        raise ScorerFileError(f"{mismatch} {SCHEMA_HASH[:12]}; train or export it again", "schema")
    return ""


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ScorerFileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise ScorerFileError(f"{path}: is larger than {LARGEST_FILE:,} bytes; a scorer is much smaller", "schema")
    return content


def _session(content: bytes, path: Path) -> Any:
    """An onnxruntime session of one thread; None where onnxruntime isn't installed."""
    try:
        runtime: Any = import_module("onnxruntime")
    except ImportError:
        return None
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library does not say what it raises
        why = printable(str(error)[:MOST_QUOTED])
        raise ScorerFileError(f"{path}: onnxruntime refuses it: {why}", "schema") from None


def _check_tensors(session: Any, path: Path) -> None:
    for each in session.get_inputs():
        problem = shape_problem(each.name, tuple(each.shape))
        kind = "tensor(bool)" if each.name == "mask" else "tensor(float)"
        if problem or each.type != kind:
            raise ScorerFileError(f"{path}: {problem or f'{each.name} is a {each.type}, not a {kind}'}", "schema")
    outputs = {each.name: each for each in session.get_outputs()}
    if OUTPUT not in outputs:
        raise ScorerFileError(f"{path}: has no output named {OUTPUT}", "schema")


def _read_weights(content: bytes, path: Path) -> tuple[dict[str, str], Weights]:
    """The metadata and weights of a file that `onnx_of` wrote."""
    try:
        onnx: Any = import_module("onnx")
    except ImportError:
        raise ScorerFileError(f"{path}: needs onnxruntime or onnx, and neither is installed: podium[learn]") from None
    try:
        model = onnx.ModelProto.FromString(content)
        metadata = {pair.key: pair.value for pair in model.metadata_props}
        weights = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    except Exception as error:  # protobuf and numpy raise what they like about bytes that are no model
        why = printable(str(error)[:MOST_QUOTED])
        raise ScorerFileError(f"{path}: is no ONNX file: {why}", "schema") from None
    wanted = {*SCALING, *(f"{layer}_{part}" for layer in LAYERS[:4] for part in "wb")}
    if not wanted <= weights.keys():
        raise ScorerFileError(f"{path}: only onnxruntime can run it, which isn't installed: podium[learn]")
    units = weights["phi2_w"].shape[1]
    state = {"value1_w": np.zeros((2 * units + P + G, 1)), "value2_w": np.zeros((1, 1))}
    return metadata, {**weights, **state, "value1_b": np.zeros(1), "value2_b": np.zeros(1)}


def _scaling_of(metadata: Mapping[str, str]) -> tuple[Array, Array] | None:
    try:
        found = json.loads(metadata["scaling"])
        mean, deviation = (np.array(found[name], dtype=np.float32) for name in ("node_mean", "node_deviation"))
    except (KeyError, TypeError, ValueError):
        return None
    return (mean, deviation) if mean.shape == deviation.shape == (F,) and (deviation > 0).all() else None


class ScorerOrigin(NamedTuple):
    """Where a scorer comes from: what its file says of itself."""

    objective: str = ""
    scenarios: str = ""
    seed: str = ""
    code_version: str = ""
    evaluation: str = ""
    """A summary, as JSON or in words."""

    def metadata(self) -> dict[str, str]:
        return {
            "objective": self.objective,
            "scenarios": self.scenarios,
            "seed": self.seed,
            "codeVersion": self.code_version,
            "evaluation": self.evaluation,
        }


def onnx_of(weights: Weights, origin: ScorerOrigin) -> bytes:
    """A set scorer as an ONNX file; raises ScorerFileError where onnx isn't installed."""
    try:
        onnx: Any = import_module("onnx")
    except ImportError:
        raise ScorerFileError("onnx is not installed; install podium[learn]") from None

    graph = scorer_graph(onnx, weights)
    helper = onnx.helper
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="podium")
    model.ir_version = IR_VERSION
    scaling = {name: np.asarray(weights[name]).astype(float).tolist() for name in SCALING}
    helper.set_model_props(model, {SCHEMA_KEY: SCHEMA_HASH, "scaling": json.dumps(scaling), **origin.metadata()})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def scorer_graph(onnx: Any, weights: Weights) -> Any:
    """The graph; `onnx` is the package."""
    helper, numbers, tensor = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    steps: list[Any] = []
    constants = [
        numbers.from_array(np.asarray(weights[name], dtype=np.float32), name)
        for name in (*SCALING, *(f"{layer}_{part}" for layer in LAYERS[:4] for part in "wb"))
    ]

    def constant(name: str, value: Any, kind: Any = np.float32) -> str:
        constants.append(numbers.from_array(np.asarray(value, dtype=kind), name))
        return name

    def step(operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        steps.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    low, high = constant("lowest", -LIMIT), constant("highest", LIMIT)
    at_nodes, last = constant("axis_nodes", [1], np.int64), constant("axis_last", [2], np.int64)

    def scaled(name: str, given: str) -> str:
        centred = step("Sub", [given, f"{name}_mean"], f"{name}_centred")
        divided = step("Div", [centred, f"{name}_deviation"], f"{name}_divided")
        return step("Clip", [divided, low, high], f"{name}_scaled")

    def layer(name: str, given: str) -> str:
        return step("Add", [step("MatMul", [given, f"{name}_w"], f"{name}_product"), f"{name}_b"], f"{name}_sum")

    def repeated(rows: str, width: int) -> str:
        """The same context for each node."""
        wanted = step("Concat", [sizes, constant(f"{rows}_width", [width], np.int64)], f"{rows}_shape", axis=0)
        return step("Expand", [rows, wanted], f"{rows}_of_nodes")

    allowed = step("Unsqueeze", [step("Cast", ["mask"], "mask_number", to=tensor.FLOAT), last], "allowed")
    zero, one = constant("zero", 0.0), constant("one", 1.0)
    x = scaled("node", "nodes")
    context = step("Concat", [scaled("pod", "pod"), scaled("global", "global")], "context", axis=1)
    context_rows = step("Unsqueeze", [context, at_nodes], "context_rows")
    first, second = constant("from", [0], np.int64), constant("to", [2], np.int64)
    sizes = step("Slice", [step("Shape", [allowed], "shape"), first, second], "batch_and_nodes")
    given = step("Concat", [x, repeated(context_rows, P + G)], "given", axis=2)
    hidden = step("Tanh", [layer("phi1", given)], "phi1_out")
    hidden = step("Tanh", [layer("phi2", hidden)], "hidden")
    total = step("ReduceSum", [step("Mul", [hidden, allowed], "counted"), at_nodes], "total", keepdims=1)
    number = step("ReduceSum", [allowed, at_nodes], "number", keepdims=1)
    mean = step("Div", [total, step("Max", [number, one], "number_above_0")], "mean")
    is_allowed = step("Greater", [allowed, zero], "is_allowed")
    lowered = step("Where", [is_allowed, hidden, constant("minus_one", -1.0)], "lowered")
    most = step("ReduceMax", [lowered], "most", axes=[1], keepdims=1)
    pool = step("Concat", [mean, most], "pool", axis=2)
    units = int(np.asarray(weights["phi2_w"]).shape[1])
    pooled = repeated(pool, 2 * units)
    judged = step("Tanh", [layer("rho1", step("Concat", [hidden, pooled], "rho1_in", axis=2))], "judged")
    flat = step("Squeeze", [layer("rho2", judged), last], "flat")
    step("Where", ["mask", flat, constant("not_feasible", NOT_FEASIBLE)], "scores")
    return helper.make_graph(
        steps,
        "set-scorer",
        [
            helper.make_tensor_value_info("nodes", tensor.FLOAT, ["batch", "width", F]),
            helper.make_tensor_value_info("pod", tensor.FLOAT, ["batch", P]),
            helper.make_tensor_value_info("global", tensor.FLOAT, ["batch", G]),
            helper.make_tensor_value_info("mask", tensor.BOOL, ["batch", "width"]),
        ],
        [helper.make_tensor_value_info("scores", tensor.FLOAT, ["batch", "width"])],
        constants,
    )
