"""The what-if panel answers with the JSON of `podium whatif` and `podium capacity`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from podium.cli.files import read_objects
from podium.kube.admission import as_admitted
from podium.whatif.changes import change_of
from podium.whatif.fit import fit
from podium.whatif.sandbox import Sandbox
from podium_dashboard.dump import view_of_objects
from tests.podium_dashboard.scheduler import CONFIG, REGISTRY, browsing, of_view

OBJECTS = read_objects(["sample:cluster"]).objects
POD = """
apiVersion: v1
kind: Pod
metadata: {name: another, namespace: shop}
spec:
  containers: [{name: web, image: web, resources: {requests: {cpu: 500m, memory: 256Mi}}}]
"""


def _posted(name: str, question: Any) -> tuple[int, Any]:
    async def ask() -> tuple[int, Any]:
        async with browsing(of_view(view_of_objects(OBJECTS, CONFIG, REGISTRY))) as browser:
            asked = browser.session.post(f"{browser.base}api/v1/{name}", json=question)
            async with asked as response:
                return response.status, await response.json()

    return asyncio.run(ask())


def test_a_drain_is_that_of_podium_whatif() -> None:
    status, answer = _posted("whatif", {"changes": [{"change": "drain", "nodes": "worker-a1"}]})
    sandbox = Sandbox(as_admitted(OBJECTS, (), "the files"), CONFIG, REGISTRY)
    expected = fit(sandbox, [change_of("--drain", "worker-a1")])
    assert (status, answer["schema"]) == (200, "podium.whatif/1")
    assert answer["answer"] == json.loads(_encoded(expected.record()))


def _encoded(value: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(value)


def test_a_change_unblocks_a_pod() -> None:
    changes = [{"change": "addNodes", "count": 1, "like": "worker-c3"}]
    _status, answer = _posted("whatif", {"changes": changes})
    verdicts = {each["pod"]: each["verdict"] for each in answer["answer"]["pods"]}
    assert verdicts["shop/checkout"] == "unblocked"


def test_pods_are_counted() -> None:
    status, answer = _posted("capacity", {"manifests": POD})
    assert (status, answer["schema"]) == (200, "podium.capacity/1")
    assert answer["answer"]["replicas"] > 0


def test_a_question_that_makes_no_sense_gets_a_sentence() -> None:
    for name, question, part in [
        ("whatif", {"changes": [{"change": "drain", "nodes": "none-such"}]}, "no node of that name"),
        ("whatif", {"changes": [{"change": "addNodes", "count": 1, "file": "/etc/passwd"}]}, "like:NODE"),
        ("whatif", {"changes": [{"change": "dance"}]}, "dance"),
        ("whatif", {"surprise": 1}, "surprise"),
        ("capacity", {}, "to be counted"),
        ("other", {}, "has no"),
    ]:
        status, answer = _posted(name, question)
        assert status in (400, 404), question
        assert part in answer["error"], answer
