"""ModelScore: whatever a model or its server does, no pod is lost and no decision waits longer than the deadline."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.config import load_config
from podium.config.durations import SECOND, Duration
from podium.engine.explain import explain
from podium.plugins import load_registry
from podium_lab.model_guard import PAUSE
from podium_lab.model_score import ModelScore
from podium_lab.model_score.args import ModelScoreArgs
from podium_lab.models.scorer_file import ScorerOrigin, onnx_of
from podium_lab.models.set_scorer import initial_weights
from podium_lab.simulator.run import RunResult
from tests.podium.engine.schedulers import World
from tests.podium_lab.model_score.servers import ModelServer
from tests.podium_lab.simulator.scenarios import SMALL, run_one
from tools.kit.builders import make_node, make_pod
from tools.kit.effort import examples
from tools.testbed.certificates import CertificateAuthority

DEADLINE = "5s"
"""Long enough for a busy machine, where it is not the deadline that is tested."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    found = ModelServer()
    yield found
    found.kill()


def world(nodes: int = 3, **args: Any) -> World:
    found = World("ModelScore", args={"ModelScore": {"deadline": DEADLINE, **args}})
    found.add(*(make_node(f"n{i}", cpu=8 + i) for i in range(nodes)))
    return found


def plugin_of(found: World) -> ModelScore:
    (runtime,) = found.scheduler.profiles.values()
    plugin = runtime.plugins["ModelScore"]
    assert isinstance(plugin, ModelScore)
    return plugin


def reasons(found: World) -> dict[str, int]:
    """Decisions by who made them."""
    return {source: number for source, number in plugin_of(found).decisions.guard.fallbacks.items() if number}


def place(found: World, number: int = 1, start: int = 0) -> list[str]:
    """Where pods went."""
    for i in range(start, start + number):
        found.attempt(make_pod(f"p{i}", requests={"cpu": "100m"}))
    return [node for _pod, node in found.bound[-number:]]


@pytest.mark.parametrize("binary", [False, True])
def test_the_model_decides_with_one_request_for_all_nodes(binary: bool) -> None:
    server = ModelServer(binary=binary)
    found = world(4, url=server.url, model="m")
    assert place(found, 3) == ["n3", "n3", "n3"]
    assert reasons(found) == {"": 3}
    assert server.inferences == 3
    assert {each["inputs"][0]["shape"][1] for each in server.questions} == {4}
    assert ("Inference-Header-Content-Length" in server.headers[0]) == binary
    server.kill()


def test_binary_and_json_carry_the_same_features(server: ModelServer) -> None:
    seen: list[dict[str, np.ndarray]] = []
    server.score = lambda tensors: (seen.append(tensors), [0.0] * tensors["mask"].shape[1])[1]  # type: ignore[func-returns-value]
    place(world(3, url=server.url, model="m", binary=False))
    place(world(3, url=server.url, model="m", binary=True))
    for name in ("nodes", "pod", "global", "mask"):
        np.testing.assert_allclose(seen[0][name].astype(float), seen[1][name].astype(float), atol=1e-6)


def test_one_feasible_node_needs_no_request(server: ModelServer) -> None:
    found = world(1, url=server.url, model="m")
    assert place(found) == ["n0"]
    assert server.inferences == 0


def test_with_mode_off_nothing_is_asked_and_shadow_decides_the_same(server: ModelServer) -> None:
    off, shadow = world(4, url=server.url, model="m", mode="off"), world(4, url=server.url, model="m", mode="shadow")
    assert not server.requests or all(method == "GET" for method, _path in server.requests)
    assert place(off, 8) == place(shadow, 8)
    assert server.inferences == 8
    assert reasons(off) == {"off": 8}
    assert reasons(shadow) == {"shadow": 8}
    assert sum(plugin_of(shadow).decisions.health.comparisons.values()) == 8


BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "nan": ("nan", {"score": lambda _tensors: [float("nan"), 1.0, 2.0]}),
    "null": ("nan", {"score": lambda _tensors: [None, 1.0, 2.0]}),
    "wrong count": ("schema", {"score": lambda _tensors: [1.0]}),
    "too many": ("schema", {"score": lambda _tensors: [1.0] * 30}),
    "words": ("schema", {"score": lambda _tensors: ["a", "b", "c"]}),
    "nested": ("schema", {"score": lambda _tensors: [[1.0], [2.0], [3.0]]}),
    "100 MB": ("exception", {"endless": True}),
    "no JSON": ("exception", {"raw": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd"}),
    "half a body": ("exception", {"raw": b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"outputs"'}),
    "nothing": ("exception", {"raw": b""}),
    "no HTTP": ("exception", {"raw": b"SSH-2.0-OpenSSH\r\n\r\n"}),
    "HTTP 500": ("exception", {"raw": b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"}),
    "HTTP 404": ("no_model", {"raw": b"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n"}),
    "a wrong header length": (
        "schema",
        {"raw": b"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 99\r\nContent-Length: 2\r\n\r\n{}"},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_answer_is_counted_by_its_reason_and_the_heuristic_decides(server: ModelServer, name: str) -> None:
    reason, behaviour = BROKEN[name]
    well = dict(vars(server))
    found = world(3, url=server.url, model="m", policy="most-allocated")
    assert place(found) == ["n2"]
    for attribute, value in behaviour.items():
        setattr(server, attribute, value)
    expected = world(3, mode="off", policy="most-allocated")
    place(expected)
    assert len(place(found, 2, start=1)) == 2
    assert reasons(found) == {"": 1, reason: 2}
    assert len(found.bound) == 3
    for attribute in behaviour:
        setattr(server, attribute, well[attribute])
    assert place(found, start=3) == ["n2"]
    assert reasons(found) == {"": 2, reason: 2}, "it is asked again, and well"


def test_a_slow_server_costs_the_deadline_and_then_the_breaker_opens(server: ModelServer) -> None:
    found = world(3, url=server.url, model="m")
    place(found)
    plugin_of(found).args = ModelScoreArgs(url=server.url, model="m", deadline=Duration(SECOND // 25))
    server.delay = 0.4
    began = time.monotonic()
    place(found, 5, start=1)
    assert time.monotonic() - began < 5 * 0.3, "each waited for the deadline, not for the server"
    assert reasons(found) == {"": 1, "timeout": 5}
    asked = server.inferences
    place(found, 3, start=6)
    assert reasons(found)["breaker_open"] == 3
    assert server.inferences == asked
    assert plugin_of(found).not_reproducible is not None
    server.delay = 0.0
    plugin_of(found).args = ModelScoreArgs(url=server.url, model="m", deadline=Duration(5 * SECOND))
    found.clock.advance(PAUSE + 1)
    assert place(found, start=9) == ["n2"]
    assert reasons(found)[""] == 2


def test_a_server_that_is_dead_at_the_start_is_a_fallback_and_the_model_decides_once_it_is_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = world(3, url=f"http://127.0.0.1:{port}", model="m")
    assert len(place(found, 2)) == 2
    assert reasons(found) == {"no_model": 2}
    server = ModelServer(port=port)
    place(found, start=2)
    assert reasons(found) == {"no_model": 2, "": 1}
    server.kill()
    place(found, start=3)
    assert sum(reasons(found).values()) == 4
    assert reasons(found)[""] == 1
    again = ModelServer(port=port)
    place(found, start=4)
    assert reasons(found)[""] == 2
    again.kill()


def test_a_server_that_hangs_at_the_start_holds_nobody() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        found = world(3, url=f"http://127.0.0.1:{silent.getsockname()[1]}", model="m", deadline="20ms")
        began = time.monotonic()
        assert len(place(found, 3)) == 3
        assert time.monotonic() - began < 2.0
        assert reasons(found) == {"timeout": 3}


def test_another_models_metadata_is_refused(server: ModelServer) -> None:
    for change in ({"schema": "0" * 64}, {"width": 5}):
        for name, value in change.items():
            setattr(server, name, value)
        found = world(3, url=server.url, model="m")
        place(found)
        assert reasons(found) == {"schema": 1}
        assert server.inferences == 0


def test_metadata_without_a_hash_is_one_warning(server: ModelServer) -> None:
    server.schema = None
    found = world(3, url=server.url, model="m")
    place(found, 3)
    assert reasons(found) == {"": 3}
    assert sum("names no feature schema" in each for each in found.reports) == 1


def test_a_token_is_sent_and_read_again(server: ModelServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    found = world(3, url=server.url, model="m", tokenFile=str(token))
    place(found)
    token.write_text("second\n")
    place(found, start=1)
    assert [each["Authorization"] for each in server.headers] == ["Bearer first", "Bearer second"]
    token.unlink()
    place(found, start=2)
    assert len(found.bound) == 3
    assert reasons(found) == {"": 2, "exception": 1}


def by_name(question: dict[str, Any]) -> dict[str, Any]:
    """Prefers the node whose name is first."""
    names = sorted(each["name"] for each in question["nodes"])
    return {
        "decisionId": question["decisionId"],
        "scores": [{"name": name, "raw": -float(i)} for i, name in enumerate(names)],
    }


def test_the_podium_protocol_gives_names_and_takes_raw_numbers(server: ModelServer) -> None:
    server.answer = by_name
    found = world(3, url=server.url, protocol="podium", policy="latency-aware")
    found.attempt(
        make_pod(
            "p", requests={"cpu": 1}, labels={"app": "web"}, metadata={"annotations": {"latencyHardConstraint": "100"}}
        )
    )
    assert found.bound == [("p", "n0")]
    (question,) = server.questions
    assert question["policy"] == "latency-aware"
    assert question["deadlineMs"] == 5000
    assert question["pod"]["labels"] == {"app": "web"}
    assert question["pod"]["requests"]["cpu"] == 1.0
    assert question["pod"]["latencyHardMs"] == 100.0
    assert "latencySoftMs" not in question["pod"]
    assert [each["name"] for each in question["nodes"]] == ["n0", "n1", "n2"]
    assert question["nodes"][1]["allocatable"] == {"cpu": 9.0, "memory": 8589934592.0, "gpu": 0.0, "pods": 110.0}
    assert all(each["feasible"] for each in question["nodes"])


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([("n0", 10), ("n1", 100), ("n2", 0)], ""),
        ([("n0", 10), ("n1", 101), ("n2", 0)], "schema"),
        ([("n0", 10), ("n1", 100)], "schema"),
        ([("n0", 10), ("n1", 100), ("n1", 100)], "schema"),
        ([("n0", 10), ("n1", 100), ("x", 100)], "schema"),
    ],
)
def test_whole_scores_are_taken_as_they_are_and_each_node_must_appear_once(
    server: ModelServer, scores: list[tuple[str, int]], reason: str
) -> None:
    server.answer = lambda question: {
        "decisionId": question["decisionId"],
        "scores": [{"name": name, "score": score} for name, score in scores],
    }
    found = world(3, url=server.url, protocol="podium")
    nodes = place(found)
    assert reasons(found) == {reason: 1}
    if not reason:
        assert nodes == ["n1"]


def test_outcomes_are_told_at_least_once_and_in_order(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium_lab.model_score.outcomes.RETRY", 0.01)
    server.answer, server.refuse_outcomes = by_name, 2
    found = world(3, url=server.url, protocol="podium")
    place(found, 2)
    outcomes = plugin_of(found).outcomes
    assert outcomes is not None
    for i in range(2):
        pod = make_pod(f"p{i}", node="n0", status={"phase": "Running"})
        found.intake.set(pod)
        found.intake.delete(pod)
    assert outcomes.flush(20.0)
    told = [(each["decisionId"], each["outcome"], each["node"]) for each in server.outcomes]
    ids = [each["decisionId"] for each in server.questions]
    assert told == [(id, outcome, "n0") for id in ids for outcome in ("bound", "running", "gone")]


def test_explain_says_who_decided_and_sends_no_outcome(server: ModelServer) -> None:
    server.answer = by_name

    def models(url: str) -> Any:
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": {"score": {"enabled": [{"name": "ModelScore"}]}},
                    "pluginConfig": [
                        {"name": "ModelScore", "args": {"url": url, "protocol": "podium", "deadline": DEADLINE}}
                    ],
                }
            ],
        }
        pod = make_pod("p")
        objects = [make_node("n1"), make_node("n2"), pod]
        return explain(objects, pod, load_config(json.dumps(config), "test", load_registry()).config).to_data()[
            "models"
        ]

    (answer,) = models(server.url)
    assert answer["plugin"] == "ModelScore"
    assert answer["decidedBy"] == "model"
    assert answer["reason"] == ""
    assert answer["milliseconds"] > 0
    server.kill()
    (answer,) = models(server.url)
    assert (answer["decidedBy"], answer["reason"]) == ("fallback", "no_model")
    assert server.outcomes == []


def test_a_file_decides_in_this_process_and_a_broken_one_is_a_fallback(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "a.onnx"
    path.write_bytes(onnx_of(initial_weights(np.random.default_rng(0), 16), ScorerOrigin("least-allocated")))
    found = world(4, model=str(path))
    place(found, 2)
    assert reasons(found) == {"": 2}
    path.write_bytes(b"no model")
    place(found, start=2)
    assert reasons(found) == {"": 2, "schema": 1}
    path.unlink()
    place(found, start=3)
    assert reasons(found)["no_model"] == 1
    assert len(found.bound) == 4


def test_a_canary_lets_the_model_decide_for_its_share_of_the_pods(server: ModelServer) -> None:
    found = world(3, url=server.url, model="m", mode="canary:0.5")
    place(found, 12)
    assert server.inferences == 12
    assert 0 < reasons(found)["canary"] < 12
    assert reasons(found)[""] + reasons(found)["canary"] == 12


def test_no_threads_are_left_behind_by_a_server_that_is_gone() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    before = threading.active_count()
    found = world(3, url=f"http://127.0.0.1:{port}", model="m")
    for i in range(40):
        found.clock.advance(PAUSE)
        place(found, start=i)
    assert len(found.bound) == 40
    assert threading.active_count() <= before + 2


def server_tls(authority: CertificateAuthority, host: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("server", hosts=[host]))
    return context


def test_a_certificate_that_is_not_accepted_is_a_fallback(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    ca = {"caFile": str(authority.certificate)}
    for host, tls, reason in (
        ("127.0.0.1", {}, "no_model"),
        ("127.0.0.1", ca, ""),
        ("models.example.com", ca, "no_model"),
        ("models.example.com", {**ca, "serverName": "models.example.com"}, ""),
        ("models.example.com", {"insecureSkipVerify": True}, ""),
        ("127.0.0.1", {"caFile": str(tmp_path / "missing.crt")}, "no_model"),
    ):
        server = ModelServer(tls=server_tls(authority, host))
        found = world(3, url=server.url, model="m", tls=tls)
        place(found)
        assert reasons(found) == {reason: 1}, (host, tls, found.reports)
        server.kill()


def test_a_server_without_tls_is_a_fallback(server: ModelServer) -> None:
    found = world(3, url=server.url.replace("http:", "https:"), model="m")
    place(found)
    assert reasons(found) == {"no_model": 1}


def test_no_bytes_of_a_server_cost_a_pod(server: ModelServer) -> None:
    """Random bytes as an answer, as the body of one, and as its tensor."""
    found = world(3, url=server.url, model="m")
    place(found)

    @settings(max_examples=examples(60), deadline=None)
    @given(st.binary(max_size=300), st.sampled_from([b"", b"Content-Length: %d\r\n", BINARY_HEAD]))
    def answered(answer: bytes, head: bytes) -> None:
        lines = head % len(answer) if head else b""
        server.raw = b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n" + answer if head else answer
        found.clock.advance(PAUSE + 1)
        before = len(found.bound)
        place(found, start=before)
        assert len(found.bound) == before + 1

    answered()


BINARY_HEAD = b"Inference-Header-Content-Length: 3\r\nContent-Length: %d\r\n"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_simulation_in_shadow_mode_is_that_of_mode_off_to_the_byte(server: ModelServer, seed: int) -> None:
    def run(**args: Any) -> RunResult:
        name = {"name": "ModelScore"}
        profile = {
            "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [name]}},
            "pluginConfig": [{**name, "args": {"url": server.url, "model": "m", "deadline": DEADLINE, **args}}],
        }
        return run_one(SMALL + f"profiles: {json.dumps([{'name': 'm', 'profile': profile}])}\n", seed=seed)

    off, shadow, active = run(mode="off"), run(mode="shadow"), run()
    assert server.inferences > 50
    assert off.table.tobytes() == shadow.table.tobytes()
    assert off.waits.tobytes() == shadow.waits.tobytes()
    assert off.table.tobytes() != active.table.tobytes()
    assert not shadow.not_reproducible
    server.delay = 0.05
    late = run(deadline="1ms")
    assert "a deadline of 0.001 s passed" in late.not_reproducible[0]
    assert any(note.startswith("this run is not reproducible") for note in late.notes)
