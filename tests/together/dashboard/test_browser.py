"""The dashboard in Chromium: every page, in both themes, with the numbers of the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.together.dashboard.browser import AXE, FULL_CLUSTER, ROOT, chromium, required, serving

pytestmark = pytest.mark.long

PAGES = [
    "",
    "map",
    "map?as=table",
    "queue",
    "groups",
    "qos",
    "policy",
    "differences",
    "whatif?drain=worker-a1",
    "configuration",
    "pods/shop/checkout",
    "pods/shop/web-1",
    "nodes/worker-a1",
    "no-such-page",
]
LIVE = [
    *("", "map", "map?as=table", "map?bars=cpu,measured:CPU/Latest", "map?pod=ml/giant-0", "queue", "queue?by=reason"),
    *("groups", "qos", "policy", "whatif?drain=worker-1", "configuration"),
    *("pods/ml/giant-0", "pods/ml/training-0", "nodes/large-0"),
]
SIZES = [(1280, 800), (390, 844)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def sample(browser: Any) -> Iterator[str]:
    with serving("dashboard", "--from", "sample:cluster", "--port", "0") as (address, _process):
        yield address


@pytest.fixture(scope="module", params=["dump", "live"])
def filled(request: pytest.FixtureRequest, browser: Any) -> Iterator[tuple[str, list[str]]]:
    """A dump, and a cluster with something on every page: the address, and the pages."""
    if request.param == "dump":
        yield request.getfixturevalue("sample"), PAGES
        return
    with serving(*FULL_CLUSTER) as (address, _process):
        page = browser.new_page()
        _shown(page, address, "groups")
        _until(page, "document.body.innerText.includes('waits') && document.body.innerText.includes('borrows')")
        page.close()
        yield address, LIVE


@pytest.fixture
def heard(browser: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what it complains about or asks of others."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page, complaints = context.new_page(), []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: None if "127.0.0.1" in asked.url else complaints.append(asked.url))
    yield page, complaints
    context.close()


def _until(page: Any, expression: str) -> None:
    """Wait until a JavaScript expression holds. Playwright's own wait would need `eval`, which the page forbids."""
    for _ in range(1200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{expression} does not become true: {page.inner_text('body')[:500]}")


def _shown(page: Any, address: str, name: str) -> None:
    page.goto("about:blank")
    page.goto(f"{address}#/{name}")
    page.wait_for_selector("h1")
    _until(page, "!document.querySelector('main .loading')")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_complains_asks_others_or_keeps_anyone_out(
    heard: tuple[Any, list[str]], filled: tuple[str, list[str]], theme: str
) -> None:
    required(AXE.is_file(), "axe-core (npm ci in web/)")
    page, complaints = heard
    page.emulate_media(color_scheme=theme)
    found = {}
    address, pages = filled
    for name in pages:
        _shown(page, address, name)
        page.evaluate(AXE.read_text(encoding="utf-8"))
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for each in result["violations"]:
            if each["impact"] in ("serious", "critical"):
                found[f"{name}: {each['id']}"] = [node["html"][:150] for node in each["nodes"][:3]]
    assert found == {}
    assert complaints == []


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_no_page_is_wider_than_its_window(
    heard: tuple[Any, list[str]], filled: tuple[str, list[str]], width: int, height: int
) -> None:
    page, _complaints = heard
    page.set_viewport_size({"width": width, "height": height})
    wide = {}
    address, pages = filled
    for name in pages:
        _shown(page, address, name)
        over = page.evaluate(
            "Math.max(document.documentElement.scrollWidth, document.querySelector('main').scrollWidth) "
            "- document.documentElement.clientWidth"
        )
        if over > 0:
            wide[name] = over
    assert wide == {}


def test_the_start_page_names_nodes_and_waiting_pods(heard: tuple[Any, list[str]], sample: str) -> None:
    page, _complaints = heard
    _shown(page, sample, "")
    page.wait_for_selector(".reasons")
    text = page.inner_text("body")
    for name in ("worker-a1", "gpu-b1", "worker-c3", "shop/checkout", "analytics/training", "shop/web-4"):
        assert name in text


def test_two_keys_lead_to_why_a_pod_waits(heard: tuple[Any, list[str]], sample: str) -> None:
    page, _complaints = heard
    _shown(page, sample, "")
    page.keyboard.press("w")
    page.wait_for_selector(".verdict-line")
    _until(page, "document.querySelector('.verdict-line').innerText.includes('nodes are available')")
    assert page.inner_text("h1").startswith(("shop/", "analytics/"))


def test_scores_are_those_of_podium_explain(heard: tuple[Any, list[str]], sample: str) -> None:
    page, _complaints = heard
    command = [sys.executable, "-m", "podium", "explain", "shop/web-4", "--from", "sample:cluster", "-o", "json"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    explanation = json.loads(said.stdout)
    best = sorted((node for node in explanation["nodes"] if node["feasible"]), key=lambda node: -node["total"])
    _shown(page, sample, "pods/shop/web-4")
    page.wait_for_selector(".waterfall")
    page.click("summary")
    shown = page.inner_text(".virtual tbody")
    rows = [line.split("\t") for line in shown.splitlines() if line.strip()]
    totals = {row[0].strip(): row[1].strip() for row in rows if len(row) > 1}
    assert totals == {node["name"]: str(node["total"]) for node in best}
    assert f"would go to {explanation['selected']}" in page.inner_text(".verdict-line")


def test_names_are_text_whatever_they_say(heard: tuple[Any, list[str]], tmp_path: Path) -> None:
    page, complaints = heard
    names = ["<img src=x onerror=document.title=1>", "\u202etxt.exe", "n" * 253, "🙂-node"]
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"pool": name}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        for name in names
    ]
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "64"}}}]},
        }
        for name in names
    ]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*nodes, *pods]}))
    with serving("dashboard", "--from", str(dump), "--port", "0") as (address, _process):
        for name in ("", "queue", "map?group=pool", *(f"pods/shop/{quote(each, safe='')}" for each in names)):
            _shown(page, address, name)
        _shown(page, address, "")
        page.wait_for_selector(".reasons")
        text = page.inner_text("body")
    assert complaints == []
    assert page.locator("img").count() == 0
    for name in names:
        assert name in text


def test_the_page_comes_back_when_the_server_does(heard: tuple[Any, list[str]]) -> None:
    page, _complaints = heard
    with serving("dashboard", "--from", "sample:cluster", "--port", "0") as (address, _process):
        _shown(page, address, "")
        port = address.split(":")[2].split("/")[0]
    page.wait_for_selector(".banner.wrong")
    with serving("dashboard", "--from", "sample:cluster", "--port", port):
        page.wait_for_selector(".banner.wrong", state="detached", timeout=60_000)


def test_pods_of_podium_up_appear_and_have_a_past(heard: tuple[Any, list[str]]) -> None:
    page, complaints = heard
    with serving("up", "--no-view", "--port", "0", "--nodes", "6") as (address, _process):
        _shown(page, address, "")
        _until(page, "document.body.innerText.includes('bound to')")
        _shown(page, address, "pods/analytics/training")
        _until(page, "document.querySelectorAll('.entry').length > 1")
        assert "nodes are available" in page.inner_text(".verdict-line")
        page.wait_for_selector(".scrubber input", timeout=60_000)
    assert [each for each in complaints if "Failed to load" not in each and "ERR_" not in each] == []
