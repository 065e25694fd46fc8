"""Computes how large every tensor of an ONNX graph will be, before anything runs.

A few thousand bytes of graph can stand for gigabytes: a chain of steps that double what they are given. So the shapes
are followed from the inputs on, step by step, by the operators' rules. How many nodes there will be is not known: NODES
stands for their number, at most once in a shape. Bounded are the numbers in all tensors together, those for each node
and the others, and the multiplications.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from podium.kube.printable import printable
from podium_plugins.gpu.terms import GROUPS, TERMS

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
