"""Rules and patterns that take long hold nobody else up, and say the same as those that do not."""

import asyncio
import json
import random
from typing import Any

import pytest
from aiohttp import ClientSession

from kubecel.re2 import compile_pattern
from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler, SlowChecker
from podium_cluster.apiserver.http.server import ApiServer
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from podium_cluster.apiserver.validation import slow_checks
from podium_cluster.apiserver.validation.slow_checks import SlowCheck

THINGS = "/apis/example.com/v1/namespaces/default/things"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NUMBERS = {"type": "array", "maxItems": 90, "items": {"type": "integer"}}
EVERY_PAIR = "self.numbers.all(a, self.numbers.all(b, a + b >= 0))"


def definition(rules: list[str], **properties: Any) -> dict[str, Any]:
    spec = {
        "type": "object",
        "properties": {"numbers": NUMBERS, **properties},
        "x-kubernetes-validations": [{"rule": rule} for rule in rules],
    }
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def thing(numbers: list[int], name: str = "a", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": {"numbers": numbers, **spec},
    }


def new_api() -> EmbeddedApi:
    return EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1))


def request(method: str, path: str, obj: Any, media: str = "application/json") -> ApiRequest:
    return ApiRequest(method, path, json.dumps(obj).encode(), media)


def test_others_are_answered_while_rules_are_evaluated() -> None:
    costly = definition([f"{EVERY_PAIR} && {number} > 0" for number in range(1, 6)])

    async def main() -> None:
        server = ApiServer(new_api())
        await server.start()
        async with ClientSession(server.url) as session:

            async def post(path: str, obj: Any) -> int:
                async with session.post(path, json=obj) as answer:
                    return answer.status

            assert await post(DEFINITIONS, costly) == 201
            writes = [asyncio.create_task(post(THINGS, thing(list(range(90)), f"t{number}"))) for number in range(2)]
            answered = 0
            while not all(write.done() for write in writes):
                async with session.get("/readyz") as ready:
                    assert ready.status == 200
                answered += 1
            assert [await write for write in writes] == [201] * 2
            assert answered > 10
        await server.stop()

    asyncio.run(main())


FLOW = (
    request(
        "POST",
        DEFINITIONS,
        definition(
            ["self.numbers.all(n, n > 0)", "!has(oldSelf.numbers) || size(self.numbers) >= size(oldSelf.numbers)"]
        ),
    ),
    request("POST", THINGS, thing([1, 2])),
    request("POST", THINGS, thing([0], "b")),
    request("POST", THINGS, {**thing([3]), "metadata": {"generateName": "made-"}}),
    request("PUT", f"{THINGS}/a", thing([1])),
    request("PATCH", f"{THINGS}/a", {"spec": {"numbers": [4, 5, 6]}}, "application/merge-patch+json"),
    request("PATCH", f"{THINGS}/a?fieldManager=me&force=true", thing([-1, 2, 3]), "application/apply-patch+yaml"),
    request("PATCH", f"{THINGS}/c?fieldManager=me", thing([7], "c"), "application/apply-patch+yaml"),
)


def test_the_answers_are_the_same_however_long_checks_take(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers(api: EmbeddedApi, *, started: bool) -> list[Any]:
        checker = SlowChecker()
        if started:
            checker.start()
        handler = RequestHandler(api)
        found = [await checker.handled(handler, each) for each in FLOW]
        checker.stop()
        return [comparable(each) for each in found]

    def comparable(answer: Any) -> Any:
        assert isinstance(answer, ApiResponse)
        body = json.loads(answer.body)
        for name in ("uid", "name"):
            body["metadata"].pop(name, None)
        return answer.status, body

    quick = asyncio.run(answers(new_api(), started=False))
    monkeypatch.setattr(slow_checks, "MOMENT", -1.0)
    assert asyncio.run(answers(new_api(), started=True)) == quick
    assert [status for status, _ in quick] == [201, 201, 422, 201, 422, 200, 422, 201]


def test_a_verdict_about_what_has_changed_meanwhile_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    api = new_api()
    handler = RequestHandler(api)
    for each in FLOW[:2]:
        handler.handle(each)
    monkeypatch.setattr(slow_checks, "MOMENT", -1.0)
    add = request(
        "PATCH", f"{THINGS}/a", [{"op": "add", "path": "/spec/numbers/0", "value": 9}], "application/json-patch+json"
    )
    check = handler.attempt(add, {})
    assert isinstance(check, SlowCheck)
    handler.handle(request("PATCH", f"{THINGS}/a", {"spec": {"numbers": [5, 5]}}, "application/merge-patch+json"))
    second = handler.attempt(add, {check.key: check.run()})
    assert isinstance(second, SlowCheck)
    answer = handler.attempt(add, {second.key: second.run()})
    assert isinstance(answer, ApiResponse)
    assert json.loads(answer.body)["spec"]["numbers"] == [9, 5, 5]


def test_a_check_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        checker = SlowChecker(seconds=0.0)
        checker.start()
        handler = RequestHandler(new_api())
        handler.handle(FLOW[0])
        monkeypatch.setattr(slow_checks, "MOMENT", -1.0)
        answer = await checker.handled(handler, FLOW[1])
        assert isinstance(answer, ApiResponse)
        assert answer.status == 504
        assert b"the rules of the definition took longer than 0 s" in answer.body
        checker.stop()

    asyncio.run(main())


def test_patterns_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    api = new_api()
    handler = RequestHandler(api)
    handler.handle(request("POST", DEFINITIONS, definition([], text={"type": "string", "pattern": "x.{900}y$"})))
    text = "".join("ax"[hash((number, 1)) % 2] for number in range(20_000))
    assert isinstance(handler.attempt(request("POST", THINGS, thing([], text=text)), {}), SlowCheck)


def test_a_pattern_may_be_used_by_two_threads_at_once() -> None:
    pattern = compile_pattern("x.{3}y$")
    pattern._free.acquire()
    try:
        assert pattern.search("ax123y")
    finally:
        pattern._free.release()
