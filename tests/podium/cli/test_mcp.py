"""`podium mcp`: tools for programs over standard input and output."""

import io
import json
from typing import Any

import pytest

from podium.cli.mcp import answer_to, run_command, serve
from tests.podium.cli.texts import SAMPLE


def asked(method: str, **parameters: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    answer = answer_to(json.dumps(message).encode(), run_command)
    assert answer is not None
    return answer.get("result", answer.get("error"))


def called(tool: str, **arguments: Any) -> Any:
    return asked("tools/call", name=tool, arguments=arguments)


def test_it_says_what_it_is_and_which_tools_it_has() -> None:
    hello = asked("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "t", "version": "1"})
    assert (hello["protocolVersion"], hello["serverInfo"]["name"]) == ("2025-03-26", "podium")
    tools = asked("tools/list")["tools"]
    assert [each["name"] for each in tools] == ["explain", "whatif", "capacity"]
    assert all(each["annotations"]["readOnlyHint"] and each["inputSchema"]["type"] == "object" for each in tools)


def test_a_tool_answers_with_what_its_command_prints() -> None:
    found = called("capacity", like="shop/web-1", **{"from": [SAMPLE]})
    assert found["structuredContent"]["answer"]["replicas"] == 16
    assert (found["isError"], found["_meta"]["exitCode"]) == (False, 0)
    blocked = called("whatif", **{"from": [SAMPLE]}, options=["--drain", "worker-b2"])
    assert blocked["_meta"]["exitCode"] == 1
    assert json.loads(blocked["content"][0]["text"])["answer"]["drained"] is False
    assert called("explain", pod="shop/web-4", **{"from": [SAMPLE]})["structuredContent"]["selected"] == "worker-b2"


def test_bad_input_is_an_error_of_the_tool_in_one_sentence() -> None:
    found = called("whatif", **{"from": [SAMPLE]}, options=["--drain", "nobody"])
    assert found["isError"]
    assert found["content"][0]["text"].startswith("--drain nobody: no node of that name; there are worker-a1, ")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"[1]", -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "run"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}', -32602),
        (
            b'{"id": 1, "method": "tools/call", "params": {"name": "whatif", "arguments": {"options": ["-o", "x"]}}}',
            -32602,
        ),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "whatif", "arguments": {"from": ["--help"]}}}', -32602),
        (b"[" * 5000, -32700),
    ],
)
def test_a_message_that_cannot_be_answered_is_refused(line: bytes, code: int) -> None:
    answer = answer_to(line, run_command)
    assert answer is not None
    assert answer["error"]["code"] == code


def test_notifications_want_no_answer_and_lines_are_answered_in_turn() -> None:
    lines = (
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n\n{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'
    )
    out = io.StringIO()
    serve(io.BytesIO(lines), out, run_command)
    assert json.loads(out.getvalue()) == {"jsonrpc": "2.0", "id": 7, "result": {}}
