"""Serves explain, whatif and capacity to programs over standard input and output, as the Model Context Protocol has it.

One JSON-RPC 2.0 message a line. The tools only read: each call runs the command of that name in this process and gives
back what it prints with `-o json`. What a command would end with (0 yes, 1 no, 2 bad input) stands beside the answer.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from podium.kube.bounds import MAX_DEPTH, UNDECODABLE, nested_too_deeply

PROTOCOLS: Final = ("2025-06-18", "2025-03-26", "2024-11-05")
MOST_BYTES: Final = 16 << 20
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, BAD_PARAMETERS = -32700, -32600, -32601, -32602

Run = Callable[[Sequence[str]], tuple[int, str, str]]
"""Runs a command: exit code, standard output, standard error."""

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_STATE: Final = {
    "from": {**_TEXTS, "description": "Files with a dump of the cluster; without any, the cluster of the kubeconfig."},
    "kubeconfig": _TEXT,
    "context": _TEXT,
    "config": {**_TEXT, "description": "A file with a KubeSchedulerConfiguration."},
    "kubernetesVersion": {**_TEXT, "description": "Decide as the kube-scheduler of this minor, such as 1.36."},
}
_CHANGES: Final = {
    "change": {**_TEXTS, "description": "Files with changes that are made first."},
    "options": {**_TEXTS, "description": "Changes as options, in order, such as --cordon worker-1."},
    "catalog": {**_TEXTS, "description": "Files with node types and prices."},
    "files": {**_TEXTS, "description": "Files with the pods, or with objects that make pods."},
    "replicas": {"type": "integer", "minimum": 1},
}
_CHANGING: Final = (
    "--add-nodes", "--remove-nodes", "--cordon", "--uncordon", "--drain", "--taint", "--untaint", "--label",
    "--unlabel", "--allocatable", "--delete-pods", "--scale", "--set",
)  # fmt: skip
TOOLS: Final[dict[str, dict[str, Any]]] = {
    "explain": {
        "description": "Says where a pod would go and why, or why it goes nowhere, node by node and plugin by plugin.",
        "properties": {"pod": {**_TEXT, "description": "NAMESPACE/NAME, or a workload such as deploy/web."}, **_STATE},
    },
    "whatif": {
        "description": "Says whether pods would fit and where, what a change would unblock, what becomes of drained "
        "nodes' pods, or which nodes to buy. Nothing is changed.",
        "properties": {
            **_STATE,
            **_CHANGES,
            "each": {"type": "boolean", "description": "Drain every node alone."},
            "unblock": {"type": "boolean", "description": "Find the cheapest nodes of the catalog."},
            "preempt": {"type": "boolean"},
            "withPending": {"type": "boolean"},
        },
    },
    "capacity": {
        "description": "Says how many pods of a template fit, where, and what binds first.",
        "properties": {
            **_STATE,
            **_CHANGES,
            "like": {**_TEXT, "description": "A pod of the cluster as the template, NAMESPACE/NAME."},
            "withPending": {"type": "boolean"},
        },
    },
}
_FLAGS: Final = {
    "from": "--from",
    "kubeconfig": "--kubeconfig",
    "context": "--context",
    "config": "--config",
    "kubernetesVersion": "--kubernetes-version",
    "change": "--change",
    "catalog": "--catalog",
    "files": "-f",
    "replicas": "--replicas",
    "each": "--each",
    "unblock": "--unblock",
    "preempt": "--preempt",
    "withPending": "--with-pending",
    "like": "--like",
}


class _RequestError(Exception):
    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


def mcp() -> None:
    """Serve explain, whatif and capacity to a program over standard input and output (Model Context Protocol).

    The tools only read. Ends with 0 when standard input ends.

    Example: podium mcp
    """
    serve(sys.stdin.buffer, sys.stdout, run_command)


def serve(lines: Any, out: Any, run: Run) -> None:
    """Answer each line until there is none."""
    while line := lines.readline(MOST_BYTES + 1):
        if not line.strip():
            continue
        answer = answer_to(line, run)
        if answer is not None:
            out.write(msgspec.json.encode(answer).decode() + "\n")
            out.flush()


def answer_to(line: bytes, run: Run) -> dict[str, Any] | None:
    """The answer to one message; None for what wants none."""
    number: Any = None
    try:
        if len(line) > MOST_BYTES or nested_too_deeply(line, MAX_DEPTH):
            raise _RequestError(PARSE_ERROR, "the message is too large or nested too deeply")
        try:
            message = msgspec.json.decode(line)
        except UNDECODABLE as error:
            raise _RequestError(PARSE_ERROR, f"the message is no JSON: {error}") from None
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if isinstance(message, dict) and ("result" in message or "error" in message):
                return None
            raise _RequestError(INVALID_REQUEST, "a message needs a method")
        number = message.get("id")
        if number is None:
            return None
        parameters = message.get("params") or {}
        if not isinstance(parameters, dict):
            raise _RequestError(BAD_PARAMETERS, "params: a map is needed")
        return {"jsonrpc": "2.0", "id": number, "result": _result(message["method"], parameters, run)}
    except _RequestError as error:
        return {"jsonrpc": "2.0", "id": number, "error": {"code": error.code, "message": str(error)}}


def _result(method: str, parameters: Mapping[str, Any], run: Run) -> dict[str, Any]:
    if method == "initialize":
        from importlib.metadata import version

        wanted = parameters.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in PROTOCOLS else PROTOCOLS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "podium", "version": version("podium")},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [_tool(name) for name in TOOLS]}
    if method == "tools/call":
        return _call(parameters, run)
    raise _RequestError(NO_METHOD, f"there is no method {method}")


def _tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": TOOLS[name]["properties"], "additionalProperties": False}
    return {
        "name": name,
        "description": TOOLS[name]["description"],
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False},
    }


def _call(parameters: Mapping[str, Any], run: Run) -> dict[str, Any]:
    name, given = parameters.get("name"), parameters.get("arguments") or {}
    if name not in TOOLS:
        raise _RequestError(BAD_PARAMETERS, f"there is no tool {name}; there are {', '.join(TOOLS)}")
    if not isinstance(given, dict):
        raise _RequestError(BAD_PARAMETERS, "arguments: a map is needed")
    code, out, err = run([str(name), *arguments(str(name), given), "-o", "json"])
    if code == 2 or not out:
        return {"content": [{"type": "text", "text": err.strip() or "no answer"}], "isError": True}
    try:
        structured = msgspec.json.decode(out)
    except msgspec.DecodeError:
        structured = None
    result: dict[str, Any] = {"content": [{"type": "text", "text": out}], "isError": False}
    if isinstance(structured, dict):
        result["structuredContent"] = structured
    result["_meta"] = {"exitCode": code, "notes": err.splitlines()}
    return result


def arguments(tool: str, given: Mapping[str, Any]) -> list[str]:
    """The command line of a call; raises for what the tool does not take.

    >>> arguments("capacity", {"files": ["pod.yaml"], "replicas": 3, "withPending": True})
    ['-f', 'pod.yaml', '--replicas', '3', '--with-pending']
    """
    properties = TOOLS[tool]["properties"]
    found: list[str] = []
    for key, value in given.items():
        if key not in properties:
            raise _RequestError(BAD_PARAMETERS, f"{tool} takes no {key}; it takes {', '.join(properties)}")
        kind = properties[key]["type"]
        right: type = {"string": str, "integer": int, "boolean": bool, "array": list}[kind]
        if not isinstance(value, right) or (kind == "integer" and isinstance(value, bool)):
            raise _RequestError(BAD_PARAMETERS, f"{key}: needs to be of type {kind}")
        texts = [str(each) for each in value] if isinstance(value, list) else [str(value)]
        if key == "options":
            found += _change_options(texts)
        elif key == "pod":
            found += [_no_option(key, text) for text in texts]
        elif kind == "boolean":
            found += [_FLAGS[key]] if value else []
        else:
            for text in texts:
                found += [_FLAGS[key], _no_option(key, text)]
    return found


def _change_options(texts: list[str]) -> list[str]:
    """Changes as they are written on a command line: only those options, each with its value."""
    if len(texts) == 1 and " " in texts[0]:
        texts = texts[0].split(" ")
    for option in texts[::2]:
        if option not in _CHANGING:
            raise _RequestError(BAD_PARAMETERS, f"options: {option} is no change; there are {', '.join(_CHANGING)}")
    if len(texts) % 2:
        raise _RequestError(BAD_PARAMETERS, f"options: {texts[-1]} has no value")
    return texts


def _no_option(key: str, value: str) -> str:
    if value.startswith("-"):
        raise _RequestError(BAD_PARAMETERS, f"{key}: {value} begins with a dash")
    return value


def run_command(words: Sequence[str]) -> tuple[int, str, str]:
    """Run a command of ours in this process; nothing it prints reaches standard output."""
    from podium.cli import main

    out, err = io.StringIO(), io.StringIO()
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    code: int | str | None = 0
    try:
        sys.argv, sys.stdin = ["podium", *words], io.TextIOWrapper(io.BytesIO())
        sys.stdout, sys.stderr = out, err
        main(words)
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
    return code if isinstance(code, int) else 2, out.getvalue(), err.getvalue()
