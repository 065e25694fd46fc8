"""Reads ONNX files with the package onnx, refuses what no policy needs, and scores nodes by the rest.

What runs is what was checked: the file is parsed once, fields that onnx does not know are dropped, and the runtime is
given the parsed graph, written again. A file can say the same thing in several ways, and readers differ in which of
them they understand.

Refused: operators other than those that `podium policy export` writes, functions, graphs within graphs, weights that
lie in other files or are not as many as they say, tensors that grow beyond what scoring needs (`onnx_sizes`), files
over 4 MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.kube.printable import printable
from podium_lab.learned.onnx_sizes import FLOAT, INT64, ITEM_BYTES, size_problems
from podium_lab.learned.policy_file import PolicyError, PolicyFile
from podium_plugins.gpu.terms import GROUPS, Floats

OPERATORS: Final = frozenset(
    (
        "Add", "Cast", "Concat", "Div", "MatMul", "Max", "Mul", "ReduceMax", "ReduceSum", "Softsign", "Squeeze", "Sub",
        "Transpose", "Unsqueeze", "Where",
    )
)  # fmt: skip
LARGEST_GRAPH: Final = 4_000_000
"""Bytes; that of the largest network that a policy may have is below one million."""
DOMAINS: Final = ("", "ai.onnx")
SHOWN: Final = 60


class OnnxGraph(NamedTuple):
    """A graph that may be run: its metadata, and its text for the runtime."""

    facts: dict[str, str]
    content: bytes


def read_graph(content: bytes, source: str) -> OnnxGraph:
    """A graph that may be run; raises PolicyError."""
    if len(content) > LARGEST_GRAPH:
        raise PolicyError(f"{source}: is larger than {LARGEST_GRAPH:,} bytes; a policy is much smaller", "schema")
    try:
        onnx: Any = import_module("onnx")
    except ImportError:
        raise PolicyError('runtime "onnx": onnx is not installed; install podium[learn]') from None
    try:
        model = onnx.ModelProto.FromString(content)
        model.DiscardUnknownFields()
        problem = next(_problems(onnx, model), None)
        facts = {pair.key: pair.value for pair in model.metadata_props}
        if not all(isinstance(text, str) for pair in facts.items() for text in pair):
            raise TypeError
    except (import_module("google.protobuf.message").DecodeError, ValueError, TypeError):
        # A TypeError: protobuf hands out text that is not UTF-8 as bytes.
        raise PolicyError(f"{source}: is no ONNX file", "schema") from None
    if problem is not None:
        raise PolicyError(f"{source}: {problem}", "schema")
    return OnnxGraph(facts, model.SerializeToString())


def checked_onnx(content: bytes, source: str) -> dict[str, str]:
    """The metadata of a graph that may be run; raises PolicyError."""
    return read_graph(content, source).facts


def _problems(onnx: Any, model: Any) -> Iterator[str]:
    """What keeps a graph from being run, sentence by sentence; the first comes before anything is computed."""
    graph = model.graph
    if not model.HasField("graph"):
        yield "has no graph"
    if model.functions:
        yield "defines functions, which no policy needs"
    if model.training_info or graph.sparse_initializer:
        yield "has parts that no policy needs: training, or sparse weights"
    for step in graph.node:
        if step.op_type not in OPERATORS or step.domain not in DOMAINS:
            yield f"uses the operator {printable(step.op_type[:SHOWN])}, which is refused"
        for attribute in step.attribute:
            kinds = onnx.AttributeProto
            if attribute.HasField("g") or attribute.graphs:
                yield "has a graph within a graph, which is refused"
            if attribute.type not in (kinds.INT, kinds.INTS) or attribute.ref_attr_name:
                yield f"gives {step.op_type} an attribute that is no whole number, which is refused"
    for constant in graph.initializer:
        if constant.external_data or constant.data_location != onnx.TensorProto.DEFAULT:
            yield "has weights in another file, which is refused"
        if not _is_whole(constant):
            yield f"has weights that are not as many as they should be: {printable(constant.name[:SHOWN])}"
    yield from size_problems(graph)


def _is_whole(constant: Any) -> bool:
    """Whether a constant has just the numbers that its shape says."""
    if constant.data_type not in (FLOAT, INT64):
        return False
    numbers = 1
    for width in constant.dims:
        if not 0 < width <= LARGEST_GRAPH:
            return False
        numbers *= width
    if constant.HasField("raw_data"):
        given = len(constant.raw_data) / ITEM_BYTES[constant.data_type]
    else:
        given = len(constant.float_data if constant.data_type == FLOAT else constant.int64_data)
    return bool(given == numbers)


MOST_QUOTED = 300
"""Characters of what onnxruntime says."""


class OnnxScore:
    """Scores nodes by the ONNX graph of a policy, on onnxruntime, one thread.

    The graph lies beside the policy file, with the same name and the ending .onnx, and says whose it is: the checksum
    in its metadata must be the policy's. Numbers are single precision there, so that points may differ by one where a
    score lies next to a limit; the network in NumPy is in double precision and the same on every machine.
    """

    def __init__(self, path: Path, policy: PolicyFile) -> None:
        """Raises PolicyError."""
        try:
            with path.open("rb") as file:
                given = file.read(LARGEST_GRAPH + 1)
        except OSError as error:
            raise PolicyError(f"{path}: cannot be read: {error.strerror}; podium policy export writes it") from None
        facts, content = read_graph(given, str(path))
        if facts.get("sha256") != policy.sha256:
            raise PolicyError(f"{path}: is not of this policy; podium policy export writes it again", "schema")
        try:
            runtime: Any = import_module("onnxruntime")
        except ImportError:
            raise PolicyError('runtime "onnx": onnxruntime is not installed; install podium[learn]') from None
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            self._session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library does not say what it raises
            why = printable(str(error)[:MOST_QUOTED])
            raise PolicyError(f"{path}: onnxruntime refuses it: {why}", "schema") from None
        self._groups = np.eye(len(GROUPS), dtype=np.float32)

    def scores(self, terms: Floats, group: int, fitting: NDArray[np.bool_]) -> Floats:
        """The score of each node, of terms[terms, nodes]."""
        given = {"nodes": np.ascontiguousarray(terms.T, dtype=np.float32), "pod": self._groups[group], "mask": fitting}
        found: Floats = self._session.run(["scores"], given)[0].astype(np.float64)
        return found
