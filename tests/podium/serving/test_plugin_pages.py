"""Pages of plugins: where they are served, what is said of it, and what becomes of a plugin that fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from podium import PageAnswer, Plugin, PluginPage
from podium.framework import Cycle
from podium.serving.plugin_pages import PageAddress, serve_pages
from tests.podium.engine.schedulers import World
from tests.podium.framework.runtimes import PROFILE
from tools.testbed.ports import free_port


class Paged(Plugin):
    """Says how it was asked, and in how many other profiles it is."""

    def filter_node(self, _cycle: Cycle, _node: Any) -> bool:
        return True

    def page(self, others: Sequence[Plugin]) -> PluginPage | None:
        def answer(path: str, query: Mapping[str, str], accepts: str) -> PageAnswer:
            text = f"{self.handle.scheduler_name}+{len(others)} {path} {dict(query)} {accepts}"
            if path == "/bad":
                raise KeyError(path)
            return PageAnswer("application/json", text.encode()) if path == "/bytes" else PageAnswer("text/plain", text)

        return PluginPage("paged", "page of Paged", 0, answer)


class Paged2(Paged):
    """Has a page of the same name."""


class Failing(Paged):
    """Fails when it is asked for its page."""

    def page(self, others: Sequence[Plugin]) -> PluginPage | None:
        raise KeyError("x")


def answers(
    *paths: str, plugins: Sequence[type[Plugin]] = (Paged,), profiles: tuple[str, ...] = (PROFILE,)
) -> list[tuple[int, str, str]]:
    """Status, content type and text, of the one page that is served."""

    async def run() -> list[tuple[int, str, str]]:
        found = []
        async with AsyncExitStack() as stack:
            port = free_port()
            world = World(*plugins, profiles=profiles)
            servers = await serve_pages(world.scheduler.profiles, {"paged": PageAddress(port)}, stack)
            session = await stack.enter_async_context(aiohttp.ClientSession(headers={"Accept": "text/x"}))
            for server in servers:
                for path in paths:
                    async with session.get(f"http://127.0.0.1:{server.port}{path}") as answer:
                        found.append((answer.status, answer.headers["Content-Type"], await answer.text()))
        return found

    return asyncio.run(run())


def test_a_page_gets_path_query_and_what_is_accepted() -> None:
    assert answers("/a/b?c=d", "/bytes") == [
        (200, "text/plain; charset=utf-8", f"{PROFILE}+0 /a/b {{'c': 'd'}} text/x"),
        (200, "application/json", f"{PROFILE}+0 /bytes {{}} text/x"),
    ]


def test_the_plugin_of_the_first_profile_is_asked_and_given_the_others() -> None:
    assert answers("/", profiles=("one", "two", "three"))[0][2].startswith("one+2 ")


def test_of_pages_with_one_name_the_first_is_served() -> None:
    assert len(answers("/", plugins=(Paged, Paged2))) == 1


def test_an_answer_that_fails_is_a_500_and_the_page_goes_on() -> None:
    assert [status for status, *_ in answers("/bad", "/")] == [500, 200]


def test_a_plugin_that_fails_has_no_page_and_others_have_theirs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "podium"):
        assert len(answers("/", plugins=(Failing, Paged))) == 1
    assert caplog.messages == ["plugin \"Failing\" has no page: KeyError: 'x'"]


@pytest.mark.parametrize(("option", "advice"), [("--x-port", "; give another port with --x-port"), ("", "")])
def test_a_port_that_is_taken_is_said_with_what_to_do(
    option: str, advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> int:
        async with AsyncExitStack() as stack:
            where = PageAddress(free_port(), option=option)
            profiles = World(Paged).scheduler.profiles
            for _ in range(2):
                await serve_pages(profiles, {"paged": where}, stack)
            return where.port

    with caplog.at_level(logging.INFO, "podium"):
        port = asyncio.run(run())
    served, refused = caplog.messages
    assert served == f"serving the page of Paged on http://127.0.0.1:{port}"
    assert refused.startswith(f"the page of Paged cannot be served on 127.0.0.1:{port}: ")
    assert refused.endswith(advice)
    assert bool(advice) == ("give another" in refused)


def test_port_0_serves_none() -> None:
    async def run() -> int:
        async with AsyncExitStack() as stack:
            return len(await serve_pages(World(Paged).scheduler.profiles, {"paged": PageAddress(0)}, stack))

    assert asyncio.run(run()) == 0
