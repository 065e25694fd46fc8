"""The QoS page, asked as curl, a program and a browser ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from podium.serving.plugin_pages import PageServer
from podium_plugins.qos.ledger import QosLedger
from podium_plugins.qos.page import QosSource, controller_rows, qos_page, slot_rows
from tools.kit.builders import make_pod

NOW = 1_000_000.0


def source(name: str = "web<1>") -> QosSource:
    ledger = QosLedger()
    annotations = {"controller": name, "slo": "0.5"}
    ledger.observe(None, make_pod("a", metadata={"annotations": annotations}), NOW - 10)
    return QosSource(
        lambda: controller_rows(ledger, NOW), lambda: slot_rows(ledger, NOW), lambda: {"mean_deficit": 0.5}
    )


def ask(path: str, headers: Mapping[str, str], name: str = "web<1>") -> tuple[int, str, str]:
    async def run() -> tuple[int, str, str]:
        page = PageServer(qos_page(source(name)), port=0)
        assert await page.start() is None
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{page.port}{path}", headers=headers) as answer,
            ):
                return answer.status, answer.content_type, await answer.text()
        finally:
            await page.stop()

    return asyncio.run(run())


def test_curl_gets_a_table_of_text() -> None:
    status, kind, text = ask("/", {"Accept": "*/*"})
    assert (status, kind) == (200, "text/plain")
    head, line = text.splitlines()
    assert head.split() == ["CONTROLLER", "QOS/SLO", "TTV", "RUNNING", "WAITING", "BINDING"]
    assert line.split() == ["web<1>", "0.00/0.50", "-10s", "0s", "10s", "0s"]


def test_any_path_answers_and_slots_have_lines_of_their_own() -> None:
    assert "web<1>-0" in ask("/whatever?layout=slots", {})[2]


def test_a_program_gets_json() -> None:
    status, kind, text = ask("/", {"Accept": "application/json"})
    assert (status, kind) == (200, "application/json")
    assert '"controller":"web<1>"' in text
    assert '"waiting_s":10.0' in text
    assert ask("/report", {})[2] == '{"mean_deficit":0.5}'


def test_a_browser_gets_a_page_that_asks_again_and_runs_nothing_of_ours() -> None:
    status, kind, text = ask("/", {"Accept": "text/html,*/*"})
    assert (status, kind) == (200, "text/html")
    assert 'http-equiv="refresh"' in text
    assert "web&lt;1&gt;" in text
    assert "<1>" not in text


@pytest.mark.parametrize("path", ["/", "/?layout=slots"])
def test_a_name_is_one_cell_of_one_line_whatever_it_holds(path: str) -> None:
    name = "web\x1b[2J\n  other  0.99/0.50\u202e\u0085\r<b>"
    shown = "web\\x1b[2J\\n  other  0.99/0.50\\u202e\\x85\\r"
    for accept in ("text/plain", "text/html"):
        status, _, text = ask(path, {"Accept": accept}, name)
        assert status == 200
        assert shown in text
        assert not set(text) & set("\x1b\r\u202e\u0085")
        assert text.count("\n") == (2 if accept == "text/plain" else 1)
        assert text.count("<td>") == (0 if accept == "text/plain" else 6 if path == "/" else 10)


def test_pages_of_others_are_refused() -> None:
    assert ask("/", {"Host": "evil.example"})[0] == 403
    assert ask("/", {"Origin": "http://evil.example"})[0] == 403


def test_a_port_that_is_taken_is_reported() -> None:
    async def run() -> Any:
        first, second = (PageServer(qos_page(source()), port=0) for _ in range(2))
        await first.start()
        second.port = first.port
        try:
            return await second.start()
        finally:
            await first.stop()

    assert "cannot be served on 127.0.0.1:" in asyncio.run(run())
