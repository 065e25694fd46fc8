"""JSON and YAML text as a sequence of documents that remember where each of their fields was written.

YAML is read the way Kubernetes reads it: times stay text, and 12:30 is text too, not a number in base 60.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import yaml


class BrokenTextError(ValueError):
    """Text that is neither JSON nor YAML, and the line where that shows."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


class Document(NamedTuple):
    """One document as JSON, with the YAML nodes it came from, or for JSON the text and where it starts in it."""

    data: bytes
    node: yaml.Node | None
    line: int

    def line_of(self, path: str) -> int:
        """The line of the field at a path such as `$.spec.containers[0].image`, or of what is nearest around it."""
        if self.node is not None:
            return _descend(self.node, path)
        try:
            node = yaml.compose(self.data.decode(), Loader=_Loader)
        except yaml.YAMLError:
            return self.line
        return self.line if node is None else self.line + _descend(node, path) - 1


def documents(text: str) -> Iterator[Document]:
    """The documents of the text, JSON when it starts like JSON, without those that are empty."""
    return _json_documents(text) if text.lstrip().startswith("{") else _yaml_documents(text)


def _json_documents(text: str) -> Iterator[Document]:
    start = len(text) - len(text.lstrip())
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        pass
    else:
        yield Document(text.encode(), None, 1)
        return
    decoder = json.JSONDecoder()
    while start < len(text):
        try:
            _, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise BrokenTextError(f"the JSON is broken: {error.msg.lower()}", error.lineno) from None
        yield Document(text[start:end].encode(), None, text.count("\n", 0, start) + 1)
        start = end + len(text[end:]) - len(text[end:].lstrip())


def _yaml_documents(text: str) -> Iterator[Document]:
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            value: Any = loader.construct_document(node)
            if node is not None and value is not None:
                yield Document(msgspec.json.encode(value), node, node.start_mark.line + 1)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "it cannot be read"
        raise BrokenTextError(f"the YAML is broken: {problem}", mark.line + 1 if mark else 1) from None
    except yaml.YAMLError as error:
        raise BrokenTextError(f"the YAML is broken: {str(error).splitlines()[0]}", 1) from None


class _Loader(yaml.CSafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012 (this is how PyYAML is configured)
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":int", ":float"))]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?[0-9][0-9_]*)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)

_STEP = re.compile(r'\.(\w+)|\["([^"]*)"\]|\[(\d+)\]')


def _descend(node: yaml.Node, path: str) -> int:
    """The line of the deepest node along the path that exists."""
    line = node.start_mark.line
    position = 1
    while step := _STEP.match(path, position):
        position = step.end()
        key = step[1] or step[2]
        inner = _entry(node, key) if key is not None else _item(node, int(step[3]))
        if inner is None:
            break
        node, line = inner
    return line + 1


def _entry(node: yaml.Node, key: str) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == key:
                return value, name.start_mark.line
    return None


def _item(node: yaml.Node, index: int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.SequenceNode) and index < len(node.value):
        return node.value[index], node.value[index].start_mark.line
    return None
