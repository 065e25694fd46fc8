"""What is read of a scheduler's /configz, and what of an answer that is none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from aiohttp import web

from podium.cli.errors import InputError
from podium.cli.in_charge import InCharge, in_charge_at
from podium.client import Access
from podium.config import default_config, to_dict
from podium.kube.versions import NEWEST, Gate
from podium.plugins import load_registry
from tests.podium.cli.command import podium
from tests.podium.client.servers import serving

T = TypeVar("T")
REGISTRY = load_registry()
DEFAULT = default_config(REGISTRY)


def answered(page: Any, question: Callable[[str], T]) -> T:
    """What is made of a page by a question that is asked at the address where it is served."""
    body = page if isinstance(page, bytes) else json.dumps(page).encode()

    async def handler(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async def main() -> T:
        async with serving(handler) as url:
            return await asyncio.to_thread(question, url)

    return asyncio.run(main())


def read(page: Any, *, named: bool = False) -> InCharge | None:
    return answered(page, lambda url: in_charge_at(Access(url), REGISTRY, NEWEST, named=named))


def page(config: Any = None, **ours: Any) -> dict[str, Any]:
    return {"componentconfig": config or to_dict(DEFAULT), "podium": {"leads": True, **ours}}


def test_what_is_shown_is_what_is_read() -> None:
    assert read(page()) == InCharge(DEFAULT, {}, False)


def test_gates_and_plugins_that_are_not_installed_here_are_taken_from_beside_the_configuration() -> None:
    config = to_dict(DEFAULT)
    config["profiles"][0]["plugins"]["multiPoint"]["enabled"].append({"name": "Elsewhere", "weight": 2})
    config["profiles"][0]["pluginConfig"].append({"name": "Elsewhere", "args": {"a": 1}})
    found = read(
        page(
            config,
            plugins={"Elsewhere": "/x/elsewhere.py"},
            featureGates=["GenericWorkload", "StorageCapacityScoring"],
            kubernetesVersion="1.37",
            explains=True,
        )
    )
    assert found is not None
    assert (found.missing, found.explains) == ({"Elsewhere": "/x/elsewhere.py"}, True)
    assert str(found.settings.rules) == "1.37"
    assert found.settings.gates == {Gate.GENERIC_WORKLOAD, Gate.STORAGE_CAPACITY_SCORING}
    assert found.settings.profiles[0].plugins == DEFAULT.profiles[0].plugins


def test_a_scheduler_that_does_not_lead_is_not_in_charge_unless_it_is_named() -> None:
    assert read(page(leads=False)) is None
    assert read(page(leads=False), named=True) is not None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"<html>", "cannot be read"),
        ({"kind": "Status"}, "its /configz is not that of a Podium"),
        ({"componentconfig": {}}, "its /configz is not that of a Podium"),
        (page({"kind": "KubeSchedulerConfiguration"}), "used here: apiVersion: Object 'apiVersion' is missing"),
        (page({"profiles": [7]}), "its configuration cannot be read: AttributeError"),
        (
            page({"profiles": [{"plugins": {"filter": {"enabled": [{}]}}}]}),
            "its configuration cannot be read: KeyError",
        ),
    ],
)
def test_an_answer_that_is_none_is_as_if_there_was_none_and_a_sentence_where_it_was_asked_for(
    answer: Any, why: str
) -> None:
    assert read(answer) is None
    with pytest.raises(InputError, match=r"^--scheduler http://127.*; give its configuration with --config$") as raised:
        read(answer, named=True)
    assert why in str(raised.value)


WAITING = {
    "position": 1,
    "pod": "shop/web",
    "queue": "active",
    "attempts": 1,
    "since": "2026-01-01T00:00:00Z",
    "nextTry": None,
    "waitsFor": [{"plugin": "NodeResourcesFit", "events": ["Node: Add"]}],
}
QUEUE = {"time": "2026-01-01T00:00:10Z", "leads": True, "counts": {"active": 1}, "pods": [WAITING]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"time": "\x1b[2J"},
        {"time": "2026-01-01T00:00:00"},
        {"counts": {"active": "x"}},
        {"pods": 5},
        {"pods": [{"pod": 7}]},
        {"pods": [{**WAITING, "since": "yesterday"}]},
        {"pods": [{**WAITING, "waitsFor": [{"plugin": 1}]}]},
    ],
)
def test_a_queue_that_is_none_is_one_sentence(wrong: dict[str, Any]) -> None:
    ran = answered(QUEUE, lambda url: podium("queue", "--scheduler", url))
    assert (ran.code, "shop/web" in ran.out) == (0, True), ran
    ran = answered({**QUEUE, **wrong}, lambda url: podium("queue", "--scheduler", url))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "/queuez is no page of a scheduler" in ran.err
