"""Who may ask what: pages of other sites nothing, and viewers no more than the API server would show them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from podium.run.dashboard import DashboardSource
from podium.testing import node, pod
from podium_dashboard.access import Viewer, ViewerAccess, cookie_token, cookie_with
from podium_dashboard.explaining import HIDDEN
from tests.podium_dashboard.scheduler import SmallScheduler, browsing

NAMES = [
    "snapshot",
    "queue",
    "groups",
    "qos",
    "policy",
    "differences",
    "configuration",
    "timeline",
    "search?q=e",
    "nodes/small",
    "nodes/large",
    "pods/mine/web",
    "pods/mine/web/explain",
    "pods/mine/urgent",
    "pods/mine/urgent/explain",
    "pods/foreign/secret-a",
    "pods/foreign/secret-a/explain",
]


def _scheduler() -> SmallScheduler:
    scheduler = SmallScheduler()
    scheduler.add(
        node("small", cpu=2),
        node("large", cpu=4),
        pod("web", namespace="mine", cpu=1),
        pod("secret-a", namespace="foreign", cpu=1),
        pod("secret-b", namespace="foreign", cpu=3),
        pod("secret-waits", namespace="foreign", cpu=99),
    )
    scheduler.schedule()
    scheduler.add(pod("urgent", namespace="mine", cpu=4, priority=1000))
    return scheduler


def test_a_viewer_of_one_namespace_sees_no_name_of_another_ones_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    async def only_mine(_self: Any, _request: Any, _namespaces: Any) -> Viewer:
        return Viewer("eva", frozenset({"mine"}))

    monkeypatch.setattr(ViewerAccess, "viewer", only_mine)

    async def ask() -> dict[str, str]:
        async with browsing(_scheduler().source()) as browser:
            texts = {}
            for name in NAMES:
                async with browser.session.get(f"{browser.base}api/v1/{name}") as response:
                    texts[name] = await response.text()
            async with browser.session.get(f"{browser.base}api/v1/stream") as response:
                texts["stream"] = (await response.content.readuntil(b"\n\n")).decode()
            return texts

    texts = asyncio.run(ask())
    for name, text in texts.items():
        if not name.startswith("pods/foreign"):
            assert "secret" not in text, name
    assert HIDDEN in texts["pods/mine/urgent/explain"]
    assert '"hiddenPods":1' in texts["nodes/small"] or '"hiddenPods":1' in texts["nodes/large"]
    assert "there is no pod foreign/secret-a" in texts["pods/foreign/secret-a"]


def test_whoever_sees_everything_sees_the_names() -> None:
    async def ask() -> Any:
        async with browsing(_scheduler().source()) as browser:
            return await browser.get("queue")

    assert {row["pod"] for row in asyncio.run(ask())["pods"]} >= {"foreign/secret-waits", "mine/urgent"}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("api/v1/queue", {}, 200),
        ("api/v1/queue", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("api/v1/queue", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("api/v1/queue", {"Origin": "http://evil.example"}, 403),
        ("api/v1/queue", {"Host": "evil.example"}, 403),
        ("api/v1/queue", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ("", {"Host": "evil.example"}, 403),
        ("assets/../../../../pyproject.toml", {}, 404),
    ],
)
def test_pages_of_other_sites_are_refused(path: str, headers: dict[str, str], status: int) -> None:
    async def ask(browser_of: DashboardSource) -> int:
        async with browsing(browser_of) as browser:
            return await browser.status(path, headers)

    assert asyncio.run(ask(_scheduler().source())) == status


def test_the_page_allows_nothing_from_elsewhere() -> None:
    async def ask() -> tuple[Any, str]:
        async with browsing(_scheduler().source()) as browser, browser.session.get(browser.base) as response:
            return response.headers, await response.text()

    headers, text = asyncio.run(ask())
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "http://" not in text
    assert "https://" not in text
    assert "<script>" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(method: str) -> None:
    async def ask() -> tuple[int, int]:
        async with browsing(_scheduler().source()) as browser:
            return await browser.status("", method=method), await browser.status("api/v1/queue", method=method)

    page, api = asyncio.run(ask())
    assert page == 405
    assert api in (404, 405, 415)


def test_names_that_look_like_markup_stay_as_they_are() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    scheduler = SmallScheduler()
    scheduler.add(node("n", cpu=2, labels={"pool": hostile}), pod("web", cpu=99, labels={"app": hostile}))
    scheduler.schedule()

    async def ask() -> tuple[Any, str]:
        async with (
            browsing(scheduler.source()) as browser,
            browser.session.get(f"{browser.base}api/v1/pods/default/web") as response,
        ):
            return await response.json(), response.headers["Content-Type"]

    answer, content_type = asyncio.run(ask())
    assert answer["labels"]["app"] == hostile
    assert content_type == "application/json"


def test_a_token_travels_in_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    cookie = cookie_with("abc.def-1", secure=True)
    assert cookie == "podium-dashboard=abc.def-1; Path=/dashboard; HttpOnly; SameSite=Strict; Secure"

    request = make_mocked_request("GET", "/", headers={"Cookie": f"other=1; {cookie.partition(';')[0]}"})
    assert cookie_token(request) == "abc.def-1"
