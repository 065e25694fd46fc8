"""Whatever comes in, what goes out makes sense: JSON, one verdict per node, scores within bounds, and no accident."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from podium.extender.handler import ExtenderHandler
from podium.extender.metrics import ExtenderMetrics
from podium.extender.service import Reply
from tests.podium.extender.questions import LOOPBACK, MAX_BODY, World, args, decoded, node, served
from tools.kit.builders import make_pod
from tools.kit.effort import examples

POD = json.loads(args(make_pod(requests={"cpu": "500m"})))["Pod"]
NODES = [
    node("a", {"mean-free-cpu": "2500", "std-free-cpu": "400", "congestion-factor": "20"}),
    node("b", {"mean-free-cpu": "100", "std-free-cpu": "400"}),
    node("c"),
]
AGENTS = ("safe", "congestion", "pigeon", "NodeAffinity", "NodeResourcesFit", "TaintToleration")
PATHS = [
    *(f"/{agent}/prioritize" for agent in AGENTS),
    *(f"/{agent}/filter" for agent in ("safe", "NodeAffinity", "NodeResourcesFit", "TaintToleration")),
    *(f"/{agent}/preempt" for agent in ("safe", "NodeResourcesFit", "pigeon")),
    "/scheduler/bind",
    "/scheduler/preemption",
]

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
numbers = st.sampled_from(
    ["nan", "-nan", "inf", "-Infinity", "1e308", "-1e308", "1e-320", "-5", "0", "", " 1", "9" * 400]
)
annotated = st.dictionaries(
    st.sampled_from(
        [
            "mean-free-cpu",
            "std-free-cpu",
            "forcasted-free-cpu",
            "mean-free-memory",
            "congestion-factor",
            "requested-cpu",
        ]
    ),
    numbers | st.floats().map(str) | st.text(max_size=5),
)
amounts = st.sampled_from(["0", "-1", "1n", "9223372036854775807", "1e30", "100Ei", "0.5", "2"])

asked_for = amounts.filter(lambda amount: amount != "-1")


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A good question, with one part of it replaced, doubled or left out, and perhaps cut short."""
    question: Any = draw(
        st.sampled_from(
            [
                {"Pod": POD, "Nodes": None, "NodeNames": ["a", "b", "c"]},
                {"Pod": POD, "Nodes": {"metadata": {}, "items": NODES}, "NodeNames": None},
                {"Pod": POD, "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}}},
                {"Pod": POD, "NodeNameToVictims": {"a": {"Pods": [POD], "NumPDBViolations": 0}}},
                {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"},
            ]
        )
    )
    question = json.loads(json.dumps(question))
    place = question
    for _ in range(draw(st.integers(0, 8))):
        if isinstance(place, dict) and place:
            key = draw(st.sampled_from(sorted(place)))
        elif isinstance(place, list) and place:
            key = draw(st.integers(0, len(place) - 1))
        else:
            break
        if draw(st.booleans()):
            place[key] = draw(json_values)
            break
        place = place[key]
    text = json.dumps(question, separators=(",", ":") if draw(st.booleans()) else (", ", ": ")).encode()
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 4)) == 0 else text


def handler(watched: bool) -> ExtenderHandler:
    world = World(*AGENTS, nodes=NODES if watched else None)
    return ExtenderHandler(world.routes, ExtenderMetrics(lambda: 0, lambda: True), max_body=MAX_BODY)


DESKS = {watched: handler(watched) for watched in (True, False)}


def ask(path: str, body: bytes, *, watched: bool) -> Reply:
    here = DESKS[watched]
    endpoint = here.find(path)
    assert endpoint is not None
    return asyncio.run(here.answer(endpoint, body))


def check(path: str, reply: Reply) -> None:
    answer = decoded(reply)
    assert "internal error" not in reply.problem, reply.problem
    verb = path.rpartition("/")[2]
    if reply.status != 200:
        assert verb not in ("filter", "bind")
        assert reply.status in (400, 500)
        assert answer["Error"]
    elif verb == "filter":
        assert bool(answer["Error"]) == (answer["Nodes"] is answer["NodeNames"] is None)
    elif verb == "prioritize":
        hosts = [each["Host"] for each in answer]
        assert len(set(hosts)) == len(hosts)
        assert all(type(each["Score"]) is int and 0 <= each["Score"] <= 10 for each in answer)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(PATHS), broken() | st.binary(max_size=40), st.booleans())
@example("/safe/filter", b'{"Pod":{},"Nodes":{"items":null},"NodeNames":null}', False)
@example("/safe/filter", b'{"Pod":{"metadata":{"name":"\\ud800"}},"NodeNames":["a"]}', True)
def test_a_question_with_anything_wrong_gets_an_answer_that_makes_sense(path: str, body: bytes, watched: bool) -> None:
    check(path, ask(path, body, watched=watched))


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(PATHS[: len(AGENTS) + 4]), st.lists(st.tuples(annotated, amounts), max_size=4), asked_for)
def test_no_annotation_and_no_amount_makes_a_score_that_is_none(
    path: str, nodes: list[tuple[dict[str, str], str]], asked: str
) -> None:
    """And every node gets a verdict, exactly one."""
    items = [
        node(f"n{number}", annotations, cpu=amount, memory="8Gi", pods="10")
        for number, (annotations, amount) in enumerate(nodes)
    ]
    pod = make_pod(requests={"cpu": asked})
    reply = ask(path, args(pod, nodes=items), watched=False)
    check(path, reply)
    answer, names = decoded(reply), [each["metadata"]["name"] for each in items]
    assert reply.status == 200
    if path.endswith("prioritize"):
        assert [each["Host"] for each in answer] == names
    else:
        kept = [each["metadata"]["name"] for each in answer["Nodes"]["items"]]
        failed = [*answer["FailedNodes"], *answer["FailedAndUnresolvableNodes"]]
        assert answer["Error"] == ""
        assert sorted([*kept, *failed]) == names


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.binary(max_size=30) | st.sampled_from([b"POST /safe/filter HTTP/1.1\r\n", b"\r\n", b"Host: x\r\n"]),
        max_size=6,
    )
)
def test_no_bytes_on_a_connection_keep_the_next_from_being_answered(pieces: list[bytes]) -> None:
    async def main() -> None:
        async with served(World("congestion", nodes=NODES)) as (server, asking):
            _reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0)
            answer = await asking.post("/prioritize", args(make_pod(), names=["a"]))
            assert answer.json == [{"Host": "a", "Score": 8}]
            writer.close()

    asyncio.run(main())
