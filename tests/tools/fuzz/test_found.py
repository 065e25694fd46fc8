"""What the fuzzer once found in servers, so that it stays found."""

from __future__ import annotations

import asyncio

import pytest

from tools.fuzz.endpoints import ENDPOINTS, PODS, attack_with

NODE_STATUS = "/api/v1/nodes/n1/status"


@pytest.mark.parametrize(
    ("name", "request_line", "status"),
    [
        ("the embedded API", f"OPTIONS {NODE_STATUS} HTTP/1.1", 405),
        ("the embedded API", f"GET {PODS}?watch=1&timeoutSeconds=1 HTTP/1.0", 200),
    ],
)
def test_a_request_that_failed_is_answered(name: str, request_line: str, status: int) -> None:
    sent = f"{request_line}\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
    answer = asyncio.run(attack_with(ENDPOINTS[name], sent))
    assert answer[9:12] == str(status).encode()


def test_a_client_that_leaves_within_its_body_is_no_failure() -> None:
    head = "POST /safe/filter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
    asyncio.run(attack_with(ENDPOINTS["the extender"], f"{head}Content-Length: 100\r\n\r\n{{".encode(), patience=0.1))
