"""Reads ONNX files without the package onnx, as far as is needed to refuse what no policy needs.

A file is a sequence of fields (protocol buffers): a key that says number and kind, then a number or so many bytes.
Refused: operators other than those that `podium policy export` writes, functions, graphs within graphs, weights that
lie in other files, more than 16 MB.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.plugins.learned.policy_file import LARGEST, PolicyError

OPERATORS = frozenset(
    (
        "Add", "Cast", "Concat", "Div", "MatMul", "Max", "Mul", "ReduceMax", "ReduceSum", "Softsign", "Squeeze", "Sub",
        "Transpose", "Unsqueeze", "Where",
    )
)  # fmt: skip
MODEL_GRAPH, MODEL_PROPERTIES, MODEL_FUNCTIONS = 7, 14, 25
GRAPH_NODES, GRAPH_CONSTANTS = 1, 5
NODE_OPERATOR, NODE_ATTRIBUTES = 4, 5
ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS = 6, 11
TENSOR_EXTERNAL, TENSOR_LOCATION = 13, 14

Field = tuple[int, int | bytes]


def checked_onnx(content: bytes, source: str) -> dict[str, str]:
    """The metadata of a graph that may be used; raises PolicyError."""
    if len(content) > LARGEST:
        raise PolicyError(f"{source}: is larger than {LARGEST:,} bytes; a policy is much smaller", "schema")
    try:
        return _checked(content, source)
    except (ValueError, IndexError, UnicodeDecodeError):
        raise PolicyError(f"{source}: is no ONNX file", "schema") from None


def _checked(content: bytes, source: str) -> dict[str, str]:
    facts: dict[str, str] = {}
    graphs = 0
    for number, value in _fields(content):
        if number == MODEL_FUNCTIONS:
            raise PolicyError(f"{source}: defines functions, which no policy needs", "schema")
        if number == MODEL_GRAPH:
            graphs += 1
            _check_graph(_bytes(value), source)
        elif number == MODEL_PROPERTIES:
            pair = dict(_fields(_bytes(value)))
            facts[_bytes(pair.get(1, b"")).decode()] = _bytes(pair.get(2, b"")).decode()
    if graphs != 1:
        raise PolicyError(f"{source}: has no graph", "schema")
    return facts


def _check_graph(graph: bytes, source: str) -> None:
    for number, value in _fields(graph):
        if number == GRAPH_NODES:
            for at, each in _fields(_bytes(value)):
                if at == NODE_OPERATOR and _bytes(each).decode() not in OPERATORS:
                    raise PolicyError(
                        f"{source}: uses the operator {_bytes(each).decode()}, which is refused", "schema"
                    )
                if at == NODE_ATTRIBUTES:
                    inner = {kind for kind, _ in _fields(_bytes(each))}
                    if inner & {ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS}:
                        raise PolicyError(f"{source}: has a graph within a graph, which is refused", "schema")
        elif number == GRAPH_CONSTANTS:
            for at, each in _fields(_bytes(value)):
                if at == TENSOR_EXTERNAL or (at == TENSOR_LOCATION and each != 0):
                    raise PolicyError(f"{source}: has weights in another file, which is refused", "schema")


def _fields(content: bytes) -> Iterator[Field]:
    """The fields of a message; raises ValueError or IndexError where it is none."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        length = {1: 8, 5: 4}.get(kind, 0)
        if kind == 2:
            length, at = _varint(content, at)
        elif not length:
            raise ValueError("no field")
        if at + length > len(content):
            raise ValueError("cut off")
        yield key >> 3, content[at : at + length]
        at += length


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("no number")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes are expected")
    return value
