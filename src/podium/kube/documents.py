"""Reads every JSON and YAML text that comes from outside, within bounds, and remembers where each field was written.

Everything in Podium that reads a file, a request or another program's output goes through one of these:

    read_json(body)              one JSON value, of any shape
    read_yaml(body)              the first YAML document (JSON is YAML) as a plain value; None when it is empty
    read_documents(text, "f")    all documents of a file, JSON or YAML, with the lines of their fields
    read_file(path)              the bytes of a file that the user names, to be given to one of the above

Each takes bytes or text and `bounds` (BODY unless given; FILE for files that the user names, SETTINGS for
configurations) and raises DocumentError, a ValueError, with `problem`, `line` and `source`; its text is a sentence
with all three. No input makes them crash, exhaust memory or take longer than the bounds say. Typed decoding of one
object off the wire is `podium.kube.decode_json`.

YAML means what it means to kubectl: anchors, merges, flow style, several documents; times stay text, and 12:30 is text
too, not a number in base 60. A text that begins like JSON and is not, may still be YAML in flow style.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec
import yaml

from podium.kube.bounds import (
    BODY,
    FILE,
    SETTINGS,
    UNDECODABLE,
    Bounds,
    DocumentError,
    nested_too_deeply,
    too_deep,
    too_large,
)
from podium.kube.yaml_nodes import compose, line_of, plain

__all__ = [
    "BODY",
    "FILE",
    "SETTINGS",
    "UNDECODABLE",
    "Bounds",
    "Document",
    "DocumentError",
    "read_documents",
    "read_json",
    "read_yaml",
]


class Document(NamedTuple):
    """One document as JSON, with the YAML nodes it came from, or for JSON the line on which it starts.

    `json_fault` is what kept a text that begins like JSON from being read as JSON.
    """

    data: bytes
    node: yaml.Node | None
    line: int
    json_fault: DocumentError | None = None

    def line_of(self, path: str) -> int:
        """The line of the field at a path such as `$.spec.containers[0].image`, or of what is nearest around it."""
        if self.node is not None:
            return _descend(self.node, path)
        try:
            node = next(compose(self.data.decode(), FILE), None)
        except ValueError:
            return self.line
        return self.line if node is None else self.line + _descend(node, path) - 1

    def position_of(self, path: str) -> str:
        """Line and column of the field at a path, as `12:5`; the line alone where the text is JSON."""
        if self.node is None:
            return str(self.line_of(path))
        mark = _mark_along(self.node, path)
        return f"{mark.line + 1}:{mark.column + 1}"


def read_json(data: bytes | str, source: str = "", bounds: Bounds = BODY) -> Any:
    """One JSON value.

    >>> read_json(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    try:
        return _json_value(raw, bounds)
    except DocumentError as error:
        raise error.of(source) from None


def read_yaml(data: bytes | str, source: str = "", bounds: Bounds = BODY) -> Any:
    """The value of the first YAML document; JSON is YAML, and where the text is JSON it is read as such.

    >>> read_yaml(b"a: [1, 2.5, 12:30, &x {b: on}]\\nc: *x")
    {'a': [1, 2.5, '12:30', {'b': True}], 'c': {'b': True}}
    """
    try:
        text = _text(data, bounds)
        if text.lstrip().startswith("{"):
            try:
                return _json_value(text.encode(), bounds)
            except DocumentError as error:
                if not error.language:
                    raise
        node = next(compose(text, bounds), None)
        return None if node is None else plain(node)
    except DocumentError as error:
        raise error.of(source) from None


def read_documents(data: bytes | str, source: str = "", bounds: Bounds = FILE) -> Iterator[Document]:
    """The documents of a file, JSON when it starts like JSON, without those that are empty."""
    try:
        text = _text(data, bounds)
        if not text.lstrip().startswith("{"):
            yield from _yaml_documents(text, bounds)
            return
        try:
            documents = list(_json_documents(text, bounds))
        except DocumentError as error:
            if not error.language:
                raise
            documents = _flow_style_documents(text, bounds, error.of(source))
        yield from documents
    except DocumentError as error:
        raise error.of(source) from None


def _text(data: bytes | str, bounds: Bounds) -> str:
    if len(data) > bounds.size:
        raise too_large(bounds)
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError("not UTF-8 text", data.count(b"\n", 0, error.start) + 1) from None


def _flow_style_documents(text: str, bounds: Bounds, json_fault: DocumentError) -> list[Document]:
    try:
        return [each._replace(json_fault=json_fault) for each in _yaml_documents(text, bounds)]
    except DocumentError as error:
        raise (json_fault if error.language else error) from None


def _yaml_documents(text: str, bounds: Bounds) -> Iterator[Document]:
    for node in compose(text, bounds):
        value = plain(node)
        if value is not None:
            yield Document(msgspec.json.encode(value), node, line_of(node))


def _json_documents(text: str, bounds: Bounds) -> Iterator[Document]:
    raw = text.encode("utf-8", "surrogatepass")
    if nested_too_deeply(raw, bounds.depth):
        raise too_deep(bounds)
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    else:
        yield Document(raw, None, 1)
        return
    decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    start = len(text) - len(text.lstrip())
    while start < len(text):
        try:
            _, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise DocumentError(error.msg.lower(), error.lineno, language="JSON") from None
        except ValueError as error:
            raise DocumentError(str(error), text.count("\n", 0, start) + 1, language="JSON") from None
        except RecursionError:
            raise too_deep(bounds) from None
        yield Document(text[start:end].encode(), None, text.count("\n", 0, start) + 1)
        start = _after_space(text, end)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


_SPACE: Final = re.compile(r"\s*")


def _after_space(text: str, start: int) -> int:
    space = _SPACE.match(text, start)
    return space.end() if space else start


_BYTE: Final = re.compile(r"(?:JSON is malformed: )?(.*) \(byte (\d+)\)")


def _json_value(raw: bytes, bounds: Bounds) -> Any:
    if len(raw) > bounds.size:
        raise too_large(bounds)
    if nested_too_deeply(raw, bounds.depth):
        raise too_deep(bounds)
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        problem, line = str(error), raw.count(b"\n") + 1
        if found := _BYTE.fullmatch(problem):
            problem, line = found[1], raw.count(b"\n", 0, int(found[2])) + 1
        elif "truncated" in problem:
            problem = "it ends too early"
        raise DocumentError(problem[:1].lower() + problem[1:], line, language="JSON") from None
    except RecursionError:
        raise too_deep(bounds) from None
    except UnicodeDecodeError:
        _text(raw, bounds)  # says on which line
        raise DocumentError("not UTF-8 text") from None


_STEP: Final = re.compile(r'\.(\w+)|\["([^"]*)"\]|\[(\d+)\]')


def _descend(node: yaml.Node, path: str) -> int:
    """The line of the deepest node along the path that exists."""
    return int(_mark_along(node, path).line) + 1


def _mark_along(node: yaml.Node, path: str) -> Any:
    """Where the deepest node along the path that exists begins."""
    mark = node.start_mark
    position = 1
    while step := _STEP.match(path, position):
        position = step.end()
        key = step[1] or step[2]
        inner = _entry(node, key) if key is not None else _item(node, int(step[3]))
        if inner is None:
            break
        node, mark = inner
    return mark


def _entry(node: yaml.Node, key: str) -> tuple[yaml.Node, Any] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == key:
                return value, name.start_mark
    return None


def _item(node: yaml.Node, index: int) -> tuple[yaml.Node, Any] | None:
    if isinstance(node, yaml.SequenceNode) and index < len(node.value):
        return node.value[index], node.value[index].start_mark
    return None


def read_file(path: Path, bounds: Bounds = FILE) -> bytes:
    """The content of a file; raises OSError, or DocumentError where it is too large: /dev/zero is a file, too."""
    with path.open("rb") as stream:
        return read_stream(stream, str(path), bounds)


def read_stream(stream: BinaryIO, source: str, bounds: Bounds = FILE) -> bytes:
    """What a stream holds; `source` is what to call it in messages."""
    data = stream.read(bounds.size + 1)
    if len(data) > bounds.size:
        raise too_large(bounds).of(source)
    return data
