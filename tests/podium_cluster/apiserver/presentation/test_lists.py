"""Lists: which moment they are of, and how they go on."""

import random
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse

CONFIG_MAP = built_in("v1", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def api() -> EmbeddedApi:
    made = EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1), history=8)
    for name in "abcd":
        made.create(CONFIG_MAP, {"metadata": {"name": name}})
    return made


def get(api: EmbeddedApi, **query: object) -> tuple[int, dict[str, Any]]:
    found = RequestHandler(api).handle(ApiRequest("GET", f"{PATH}?{urlencode(query)}"))
    assert isinstance(found, ApiResponse)
    return found.status, msgspec.json.decode(found.body)


def names(listed: dict[str, Any]) -> str:
    return "".join(item["metadata"]["name"] for item in listed["items"])


def test_items_leave_out_what_the_list_says(api: EmbeddedApi) -> None:
    _, listed = get(api)
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert "kind" not in listed["items"][0]
    assert listed["metadata"]["resourceVersion"] == str(api.store.revision)


def test_a_list_of_an_exact_moment(api: EmbeddedApi) -> None:
    then = api.store.revision
    api.delete(CONFIG_MAP, "default", "b")
    _, listed = get(api, resourceVersion=then, resourceVersionMatch="Exact")
    assert (names(listed), listed["metadata"]["resourceVersion"]) == ("abcd", str(then))
    assert names(get(api, resourceVersion=then)[1]) == "acd", "not older than then is now"


def test_a_moment_that_is_forgotten_is_gone(api: EmbeddedApi) -> None:
    then = api.store.revision
    for number in range(30):
        api.update(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}, "data": {"n": str(number)}})
    status, refusal = get(api, resourceVersion=then, resourceVersionMatch="Exact")
    assert (status, refusal["reason"]) == (410, "Expired")
    assert refusal["message"] == "The resourceVersion for the provided list is too old."


def test_a_moment_that_has_not_come_is_too_late_to_wait_for(api: EmbeddedApi) -> None:
    status, refusal = get(api, resourceVersion=10_000)
    assert (status, refusal["reason"], refusal["details"]["retryAfterSeconds"]) == (504, "Timeout", 1)


def test_a_chunk_whose_moment_is_forgotten_may_go_on_with_now(api: EmbeddedApi) -> None:
    _, first = get(api, limit=2)
    for number in range(30):
        api.update(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "default"}, "data": {"n": str(number)}})
    api.create(CONFIG_MAP, {"metadata": {"name": "bb"}})
    status, refusal = get(api, limit=2, **{"continue": first["metadata"]["continue"]})
    assert (status, refusal["reason"]) == (410, "Expired")
    assert refusal["message"].startswith("The provided continue parameter is too old to display a consistent list")
    _, rest = get(api, limit=9, **{"continue": refusal["metadata"]["continue"]})
    assert names(first) + names(rest) == "ab" + "bb" + "cd"


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"continue": "abc"}, 400, "invalid continue token: continue key is not valid: "),
        (
            {"resourceVersion": "x"},
            400,
            'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": '
            "invalid syntax",
        ),
        (
            {"resourceVersionMatch": "Exact"},
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden '
            "unless resourceVersion is provided",
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is '
            'forbidden for resourceVersion "0"',
        ),
    ],
)
def test_what_is_wrong_with_a_list(api: EmbeddedApi, query: dict[str, str], status: int, message: str) -> None:
    found, refusal = get(api, **query)
    assert found == status
    assert refusal["message"].startswith(message)


def test_the_same_seed_and_the_same_requests_give_the_same_bytes() -> None:
    def told() -> list[bytes]:
        clock = ManualClock(1_700_000_000.0)
        api = EmbeddedApi(clock=clock, rng=random.Random(7))
        answers = []
        pod = {"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
        for number in range(20):
            clock.advance(1.5)
            for path, body in (("pods", pod), ("services", {**service, "metadata": {"name": f"s{number}"}})):
                target = f"/api/v1/namespaces/default/{path}"
                request = ApiRequest("POST", target, msgspec.json.encode(body), "application/json")
                found = RequestHandler(api).handle(request)
                assert isinstance(found, ApiResponse)
                assert found.status == 201
                answers.append(found.body)
        return answers

    assert told() == told()
