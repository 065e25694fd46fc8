"""Reads ONNX files with the package onnx, refuses what no policy needs, and scores nodes by the rest.

What runs is what was checked: the file is parsed once, fields that onnx does not know are dropped, and the runtime is
given the parsed graph, written again. A file can say the same thing in several ways, and readers differ in which of
them they understand.

Refused: operators other than those that `podium policy export` writes, functions, graphs within graphs, weights that
lie in other files or are not as many as they say, tensors that grow beyond what scoring needs, files over 4 MB.

A few thousand bytes of graph can stand for gigabytes: a chain of steps that double what they are given. So the size of
every tensor is computed before anything runs, from the inputs on, by the operators' rules. How many nodes there will be
is not known: NODES stands for their number, at most once in a shape. Bounded are the numbers in all tensors together,
those for each node and the others, and the multiplications.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.kube.printable import printable
from podium_lab.learned.policy_file import PolicyError, PolicyFile
from podium_plugins.gpu.terms import GROUPS, TERMS, Floats

Shape = tuple[int, ...]

NODES: Final = -1
MOST_PER_NODE: Final = 8_192
MOST_NUMBERS: Final = 4_000_000
"""Numbers: for each node, and apart from the nodes. The largest network of a policy needs 2,096 and 211,561."""
MOST_WORK_PER_NODE: Final = 1 << 20
MOST_WORK: Final = 1 << 26
"""Multiplications, the same way: it needs 75,558 and 133,272."""
MOST_STEPS: Final = 500
DEEPEST: Final = 4
FLOAT, INT64, BOOL = 1, 7, 9
ITEM_BYTES: Final = {FLOAT: 4, INT64: 8}
INPUTS: Final[Mapping[str, Shape]] = {"nodes": (NODES, len(TERMS)), "pod": (len(GROUPS),), "mask": (NODES,)}
OUTPUT: Final = "scores"


class _RefusedError(Exception):
    """A step that breaks its operator's rules, or goes beyond the bounds: why."""


def size_problems(graph: Any) -> Iterator[str]:
    """Why a graph must not run; nothing where it may."""
    try:
        _Sizes(graph).follow()
    except _RefusedError as refused:
        yield str(refused)


class _Sizes:
    """The shapes that are known so far, and what they come to."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._shapes: dict[str, Shape] = {}
        self._axes: dict[str, list[int]] = {}
        """Constants that can say along which dimensions a step goes."""
        self._numbers = self._per_node = self._work = self._work_per_node = 0

    def follow(self) -> None:
        graph = self._graph
        if len(graph.node) > MOST_STEPS:
            raise _RefusedError(f"has more than {MOST_STEPS} steps; a policy has far fewer")
        for constant in graph.initializer:
            if constant.name in INPUTS:
                raise _RefusedError(f"has weights in place of the input {constant.name}")
            self._add(constant.name, tuple(constant.dims))
            if constant.data_type == INT64 and prod(constant.dims) <= DEEPEST:
                self._axes[constant.name] = _whole_numbers(constant)
        for given in graph.input:
            if given.name in self._shapes:  # how weights were listed in former versions
                continue
            if given.name not in INPUTS:
                raise _RefusedError(f"needs an input that is not given: {_shown(given.name)}")
            self._add(given.name, INPUTS[given.name])
        for step in graph.node:
            self._follow(step)
        if any(step.output for step in graph.node) and self._shapes.get(OUTPUT) != (NODES,):
            raise _RefusedError("does not give one score for each node")

    def _follow(self, step: Any) -> None:
        if not step.output:
            return  # it makes nothing
        if len(step.output) > 1:
            raise _RefusedError(f"has a {step.op_type} with several results")
        missing = next((name for name in step.input if name and name not in self._shapes), None)
        if missing is not None:
            raise _RefusedError(f"uses {_shown(missing)} before it is there")
        given = [self._shapes[name] for name in step.input if name]
        try:
            shape = self._result(step, given)
        except (ValueError, IndexError, TypeError, KeyError):
            raise _RefusedError(f"has a {step.op_type} whose inputs do not fit") from None
        self._add(step.output[0], shape)

    def _result(self, step: Any, given: Sequence[Shape]) -> Shape:
        match step.op_type:
            case "Add" | "Sub" | "Mul" | "Div" | "Max" | "Where":
                return _broadcast(given)
            case "Cast":
                if _number(step, "to", FLOAT) not in (FLOAT, INT64, BOOL):
                    raise _RefusedError("has a Cast to something else than numbers")
                (only,) = given
                return only
            case "Softsign":
                (only,) = given
                return only
            case "MatMul":
                return self._product(*given)
            case "Concat":
                return _joined(given, _number(step, "axis", None))
            case "ReduceMax" | "ReduceSum":
                return self._reduced(step, given[0])
            case "Squeeze":
                axes = self._along(step, given[0]) or [at for at, width in enumerate(given[0]) if width == 1]
                if any(given[0][at] != 1 for at in axes):
                    raise ValueError
                return tuple(width for at, width in enumerate(given[0]) if at not in axes)
            case "Unsqueeze":
                return self._unsqueezed(step, given[0])
            case "Transpose":
                order = _numbers(step, "perm") or list(range(len(given[0])))[::-1]
                if sorted(order) != list(range(len(given[0]))):
                    raise ValueError
                return tuple(given[0][at] for at in order)
        raise ValueError

    def _product(self, one: Shape, other: Shape) -> Shape:
        if not (len(one) == 2 and len(other) == 2 and one[1] == other[0]):
            raise ValueError
        widths = (one[0], one[1], other[1])
        work = prod(width for width in widths if width != NODES)
        if widths.count(NODES) == 1:
            self._work_per_node += work
        else:
            self._work += work
        if self._work > MOST_WORK or self._work_per_node > MOST_WORK_PER_NODE:
            raise _RefusedError("multiplies more than a policy needs")
        return one[0], other[1]

    def _reduced(self, step: Any, shape: Shape) -> Shape:
        axes = self._along(step, shape) or list(range(len(shape)))
        keeps = _number(step, "keepdims", 1)
        return tuple(1 if at in axes else width for at, width in enumerate(shape) if keeps or at not in axes)

    def _unsqueezed(self, step: Any, shape: Shape) -> Shape:
        rank = len(shape) + len(self._axes[step.input[1]])
        axes = {_axis(at, rank) for at in self._axes[step.input[1]]}
        if len(axes) != rank - len(shape):
            raise ValueError
        rest = iter(shape)
        return tuple(1 if at in axes else next(rest) for at in range(rank))

    def _along(self, step: Any, shape: Shape) -> list[int]:
        """The dimensions that a step goes along; none where it does not say."""
        second = step.input[1] if len(step.input) > 1 else ""
        found = self._axes[second] if second else _numbers(step, "axes")
        return [_axis(at, len(shape)) for at in found]

    def _add(self, name: str, shape: Shape) -> None:
        if name in self._shapes:
            raise _RefusedError(f"has two tensors called {_shown(name)}")
        if len(shape) > DEEPEST:
            raise _RefusedError(f"has more than {DEEPEST} dimensions in {_shown(name)}")
        if shape.count(NODES) > 1:
            raise _RefusedError(f"compares nodes with each other in {_shown(name)}")
        size = prod(width for width in shape if width != NODES)
        if NODES in shape:
            self._per_node += size
        else:
            self._numbers += size
        if self._per_node > MOST_PER_NODE or self._numbers > MOST_NUMBERS:
            raise _RefusedError(f"grows beyond what a policy needs: {_shown(name)} has too many numbers")
        self._shapes[name] = shape


def _broadcast(given: Sequence[Shape]) -> Shape:
    """The shape that all of these are stretched to: from the right, what is 1 wide becomes as wide as another."""
    rank = max(map(len, given))
    padded = [(1,) * (rank - len(shape)) + shape for shape in given]
    found = []
    for widths in zip(*padded, strict=True):
        others = set(widths) - {1}
        if len(others) > 1:
            raise ValueError
        found.append(others.pop() if others else 1)
    return tuple(found)


def _joined(given: Sequence[Shape], axis: int | None) -> Shape:
    if axis is None or len({len(shape) for shape in given}) != 1:
        raise ValueError
    at = _axis(axis, len(given[0]))
    rests = {shape[:at] + shape[at + 1 :] for shape in given}
    widths = [shape[at] for shape in given]
    if len(rests) != 1 or (NODES in widths and len(widths) > 1):
        raise ValueError
    return *given[0][:at], sum(widths) if NODES not in widths else NODES, *given[0][at + 1 :]


def _axis(at: int, rank: int) -> int:
    if not -rank <= at < rank:
        raise ValueError
    return at % rank


def _number(step: Any, name: str, default: int | None) -> int | None:
    return next((int(each.i) for each in step.attribute if each.name == name), default)


def _numbers(step: Any, name: str) -> list[int]:
    return next((list(each.ints)[:DEEPEST] for each in step.attribute if each.name == name), [])


def _whole_numbers(constant: Any) -> list[int]:
    if constant.HasField("raw_data"):
        return [int(number) for number in np.frombuffer(constant.raw_data, "<i8")]
    return list(constant.int64_data)


def _shown(name: str) -> str:
    return printable(name[:60])


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
