"""Whatever a plugin does or answers, the pod's cycle fails with one sentence that names it, and nothing else fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from podium.cluster import Nodes
from podium.framework import SKIP, Code, Plugin, PluginError, Status, Verdict, Wait
from podium.framework.answers import describe, running
from podium.framework.depends_on import DependsOn, NodePart
from podium.framework.diagnosis import Diagnosis, NodeStatuses, PostFilterResult
from podium.framework.profile import ProfileRuntime
from tests.podium.framework.runtimes import answering, cycle_of, make_runtime
from tools.kit.builders import make_cluster, make_node, make_pod

RAISED = LookupError("no such rack")
FILTER = 'running "X" filter plugin'
SCORE = 'running Score plugins: plugin "X" failed with'
NORMALIZE = 'running Normalize on Score plugins: plugin "X" failed with'
EACH = "score must give a whole number for each of 3 nodes"
RANGE = 'applying score defaultWeights on Score plugins: plugin "X"'


def runtime_of(plugin: type[Plugin]) -> ProfileRuntime:
    """A profile on three empty nodes."""
    return make_runtime(make_cluster([make_node(f"n{number}") for number in range(3)]), plugin)


def failure(ask: Callable[[ProfileRuntime], Any], **answers: Any) -> str:
    with pytest.raises(PluginError) as error:
        ask(runtime_of(answering("X", **answers)))
    return str(error.value)


def filtered(runtime: ProfileRuntime) -> list[Status | None]:
    refusals = runtime.run_filters(cycle_of(runtime, make_pod()), Nodes(runtime.handle.cluster))
    return [refusals.status(position) for position in range(3)]


def filtered_one(runtime: ProfileRuntime) -> Status | None:
    return runtime.run_filters_on(cycle_of(runtime, make_pod()), 0)


def scored(runtime: ProfileRuntime) -> list[int]:
    totals: list[int] = runtime.run_scores(cycle_of(runtime, make_pod()), Nodes(runtime.handle.cluster)).total.tolist()
    return totals


# Filters


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(None, [None] * 3, id="None lets all through"),
        pytest.param(np.array([True, False, True]), [None, "node(s) didn't satisfy plugin X", None], id="bools"),
        pytest.param([False, True, True], ["node(s) didn't satisfy plugin X", None, None], id="a list of bools"),
        pytest.param(
            Verdict(np.array([0, 2, 0]), lambda code: Status.unresolvable(f"reason {code}")),
            [None, "reason 2", None],
            id="numbers with reasons",
        ),
    ],
)
def test_what_a_filter_may_answer(answer: Any, expected: list[str | None]) -> None:
    said = filtered(runtime_of(answering("X", filter=answer)))
    assert [None if status is None else status.message for status in said] == expected
    assert {status.plugin for status in said if status is not None} <= {"X"}


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        pytest.param(None, Code.SUCCESS, "", id="None"),
        pytest.param(True, Code.SUCCESS, "", id="True"),
        pytest.param(np.True_, Code.SUCCESS, "", id="true of numpy"),
        pytest.param(Status(Code.SUCCESS), Code.SUCCESS, "", id="success"),
        pytest.param(False, Code.UNSCHEDULABLE, "node(s) didn't satisfy plugin X", id="False"),
        pytest.param(np.False_, Code.UNSCHEDULABLE, "node(s) didn't satisfy plugin X", id="false of numpy"),
        pytest.param("too hot", Code.UNSCHEDULABLE, "too hot", id="a reason"),
        pytest.param(Status.unresolvable("gone"), Code.UNRESOLVABLE, "gone", id="a status"),
        pytest.param(Status.pending("soon"), Code.PENDING, "soon", id="pending"),
    ],
)
def test_what_a_one_node_filter_may_answer(answer: Any, code: Code, reason: str) -> None:
    runtime = runtime_of(answering("X", filter_node=answer))
    expected = None if code == Code.SUCCESS else Status(code, (reason,), "X")
    assert filtered(runtime) == [expected] * 3
    assert filtered_one(runtime) == expected


def test_a_filter_that_says_only_no_may_have_its_reason_declared() -> None:
    class Hot(Plugin):
        reason = "node(s) were too hot"

        def filter_node(self, _cycle: Any, _node: Any) -> bool:
            return False

    assert filtered(runtime_of(Hot)) == [Status.unschedulable("node(s) were too hot").by("Hot")] * 3


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (RAISED, f"{FILTER}: LookupError: no such rack"),
        (
            [True, False],
            f"{FILTER}: filter must give None, a Verdict, or a bool for each of 3 nodes, got bool of shape (2,)",
        ),
        (
            [1, 0, 1],
            f"{FILTER}: filter must give None, a Verdict, or a bool for each of 3 nodes, got int64 of shape (3,)",
        ),
        (True, f"{FILTER}: filter must give None, a Verdict, or a bool for each of 3 nodes, got True (bool)"),
        (
            Verdict(np.array([0, 1]), lambda _code: Status.unschedulable("no")),
            f"{FILTER}: filter must give a Verdict with a whole number for each of 3 nodes, got int64 of shape (2,)",
        ),
        (
            Verdict(np.array([0.0, 1.0, 0.0]), lambda _code: Status.unschedulable("no")),
            f"{FILTER}: filter must give a Verdict with a whole number for each of 3 nodes, got float64 of shape (3,)",
        ),
        (
            Verdict(np.array([0, 3, 0]), lambda code: [Status.unschedulable("no")][code]),
            f"{FILTER}: status_of(3): IndexError: list index out of range",
        ),
        (
            Verdict(np.array([0, 3, 0]), lambda _code: "no"),  # type: ignore[arg-type, return-value]
            f"{FILTER}: status_of(3) must give a Status that refuses the node, got str",
        ),
        (
            Verdict(np.array([0, 3, 0]), lambda _code: Status(Code.SUCCESS)),
            f"{FILTER}: status_of(3) must give a Status that refuses the node, got SUCCESS",
        ),
    ],
)
def test_what_a_filter_may_not_answer(answer: Any, sentence: str) -> None:
    assert failure(filtered, filter=answer) == sentence


def test_numbers_of_a_verdict_may_be_a_list() -> None:
    answer = Verdict([0, 1, 0], lambda _code: Status.unschedulable("no"))  # type: ignore[arg-type]
    assert filtered(runtime_of(answering("X", filter=answer))) == [None, Status.unschedulable("no").by("X"), None]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (RAISED, f"{FILTER}: LookupError: no such rack"),
        (PluginError("out of patience"), f"{FILTER}: out of patience"),
        (1, f"{FILTER}: filter_node must give None, a bool, a reason or a Status, got 1 (int)"),
        ("", f"{FILTER}: filter_node must give the reason, or None where the node passes; got an empty text"),
        (SKIP, f"{FILTER}: filter_node must give a Status that refuses the node, got SKIP"),
        (Status.error("broken"), f"{FILTER}: broken"),
    ],
)
def test_what_a_one_node_filter_may_not_answer(answer: Any, sentence: str) -> None:
    assert failure(filtered, filter_node=answer) == sentence
    assert failure(filtered_one, filter_node=answer) == sentence


def test_a_filter_is_not_asked_about_no_nodes() -> None:
    runtime = runtime_of(answering("X", filter=RAISED))
    none = Nodes(runtime.handle.cluster, np.zeros(0, dtype=np.intp))
    assert len(runtime.run_filters(cycle_of(runtime, make_pod()), none).rows) == 0


# Scores


@pytest.mark.parametrize(
    ("answer", "scores"),
    [
        (np.array([1, 2, 100]), [1, 2, 100]),
        ([0, 50, 3], [0, 50, 3]),
        (np.array([1.0, 2.0, 3.0]), [1, 2, 3]),
        (np.array([True, False, True]), [1, 0, 1]),
        (np.array([7, 8, 9], dtype=np.uint8), [7, 8, 9]),
        (7, [7, 7, 7]),
    ],
)
def test_what_a_score_may_answer(answer: Any, scores: list[int]) -> None:
    assert scored(runtime_of(answering("X", score=answer))) == scores


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"score": RAISED}, f"{SCORE}: LookupError: no such rack"),
        ({"score": None}, f"{SCORE}: {EACH}, got None"),
        ({"score": 2.5}, f"{SCORE}: {EACH}, got 2.5 (float)"),
        ({"score": 101}, f"{RANGE} returns an invalid score 101, it should in the range of [0, 100] after normalizing"),
        ({"score": -1}, f"{RANGE} returns an invalid score -1, it should in the range of [0, 100] after normalizing"),
        (
            {"score": 2**70},
            f"{RANGE} returns an invalid score {2**70}, it should in the range of [0, 100] after normalizing",
        ),
        ({"score": np.zeros(2)}, f"{SCORE}: {EACH}, got float64 of shape (2,)"),
        ({"score": np.zeros((3, 1))}, f"{SCORE}: {EACH}, got float64 of shape (3, 1)"),
        ({"score": np.array([1, np.nan, 2])}, f"{SCORE}: {EACH}, got NaN or infinity"),
        ({"score": np.array([1, -np.inf, 2])}, f"{SCORE}: {EACH}, got NaN or infinity"),
        ({"score": np.array([1, 2.5, 2])}, f"{SCORE}: {EACH}, got fractions: round them"),
        ({"score": ["a", "b", "c"]}, f"{SCORE}: {EACH}, got <U1 of shape (3,)"),
        ({"score": [None, 1, 2]}, f"{SCORE}: {EACH}, got object of shape (3,)"),
        ({"score": [2**70, 1, 2]}, f"{SCORE}: {EACH}, got object of shape (3,)"),
        ({"score_node": RAISED}, f"{SCORE}: LookupError: no such rack"),
        ({"score_node": float("nan")}, f"{SCORE}: score_node must give a whole number, got nan (float)"),
        ({"score_node": float("inf")}, f"{SCORE}: score_node must give a whole number, got inf (float)"),
        ({"score_node": 2.5}, f"{SCORE}: score_node must give a whole number, got 2.5 (float)"),
        ({"score_node": None}, f"{SCORE}: score_node must give a whole number, got None"),
        ({"score_node": "best"}, f"{SCORE}: score_node must give a whole number, got 'best' (str)"),
        ({"score_node": 1, "normalize": RAISED}, f"{NORMALIZE}: LookupError: no such rack"),
        (
            {"score_node": 1, "normalize": [1]},
            f"{NORMALIZE}: {EACH.replace('score', 'normalize', 1)}, got int64 of shape (1,)",
        ),
        (
            {"score": [0, 101, -1]},
            f"{RANGE} returns an invalid score 101, it should in the range of [0, 100] after normalizing",
        ),
        (
            {"score_node": -1},
            f"{RANGE} returns an invalid score -1, it should in the range of [0, 100] after normalizing",
        ),
        (
            {"score_node": 1, "normalize": [0, 0, 101]},
            f"{RANGE} returns an invalid score 101, it should in the range of [0, 100] after normalizing",
        ),
    ],
)
def test_what_a_score_may_not_answer(answers: dict[str, Any], sentence: str) -> None:
    assert failure(scored, **answers) == sentence


def test_a_score_too_large_for_any_number_of_ours_fails_by_name() -> None:
    assert (
        failure(scored, score_node=2**70)
        == f"{SCORE}: score_node must give a whole number, got one of more than 64 bits"
    )


# The other points

ASK: dict[str, Callable[[ProfileRuntime], Any]] = {
    "pre_filter": lambda runtime: runtime.run_pre_filter(cycle_of(runtime, make_pod())),
    "post_filter": lambda runtime: runtime.run_post_filter(
        cycle_of(runtime, make_pod()), Diagnosis(3, NodeStatuses(3))
    ),
    "pre_score": lambda runtime: runtime.run_pre_score(cycle_of(runtime, make_pod()), Nodes(runtime.handle.cluster)),
    "reserve": lambda runtime: runtime.run_reserve(cycle_of(runtime, make_pod()), "n1"),
    "permit": lambda runtime: runtime.run_permit(cycle_of(runtime, make_pod()), "n1"),
    "add_pod": lambda runtime: runtime.add_pod(
        cycle_of(runtime, make_pod()), runtime.handle.cluster.stand_in(make_pod("other"), 0)
    ),
    "remove_pod": lambda runtime: runtime.remove_pod(
        cycle_of(runtime, make_pod()), runtime.handle.cluster.stand_in(make_pod("other"), 0)
    ),
}
WHAT = {
    "pre_filter": 'running PreFilter plugin "X"',
    "post_filter": 'running PostFilter plugin "X"',
    "pre_score": 'running PreScore plugin "X"',
    "reserve": 'running Reserve plugin "X"',
    "permit": 'running Permit plugin "X"',
    "add_pod": 'running AddPod on PreFilter plugin "X"',
    "remove_pod": 'running RemovePod on PreFilter plugin "X"',
}


@pytest.mark.parametrize("point", ASK)
def test_what_is_raised_fails_the_cycle_at_every_point(point: str) -> None:
    others = {"pre_filter": None} if point.endswith("_pod") else {}
    assert failure(ASK[point], **{**others, point: RAISED}) == f"{WHAT[point]}: LookupError: no such rack"


@pytest.mark.parametrize(
    ("point", "answer", "wanted"),
    [
        ("pre_filter", ["n1"], "it must give None, a Status or a set of node names, got ['n1'] (list)"),
        ("post_filter", None, "it must give a PostFilterResult, got None"),
        ("post_filter", PostFilterResult("n1"), "it must give None or a Status, got 'n1' (str)"),  # type: ignore[arg-type]
        (
            "post_filter",
            PostFilterResult(None, "n1"),  # type: ignore[arg-type]
            "its PostFilterResult must have a Nomination or None as nomination, got 'n1' (str)",
        ),
        ("pre_score", True, "it must give None, SKIP or a Status, got True (bool)"),
        ("reserve", False, "it must give None or a Status, got False (bool)"),
        ("permit", 30, "it must give None, a Status or Wait(seconds), got 30 (int)"),
        ("permit", Wait(float("nan")), "Wait needs a number of seconds, at least 0, got nan (float)"),
        ("permit", Wait(-1), "Wait needs a number of seconds, at least 0, got -1 (int)"),
        ("permit", Wait("1m"), "Wait needs a number of seconds, at least 0, got '1m' (str)"),  # type: ignore[arg-type]
        ("add_pod", 1, "it must give None or a Status, got 1 (int)"),
        ("remove_pod", Status.unschedulable("no"), "no"),
    ],
)
def test_nonsense_fails_the_cycle_at_every_point(point: str, answer: Any, wanted: str) -> None:
    others = {"pre_filter": None} if point.endswith("_pod") else {}
    assert failure(ASK[point], **{**others, point: answer}) == f"{WHAT[point]}: {wanted}"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (RAISED, "LookupError: no such rack"),
        (PluginError("out of patience"), "out of patience"),
        (True, "it must give None or a Status, got True (bool)"),
    ],
)
def test_a_broken_pre_enqueue_holds_the_pod_back_and_is_reported(answer: Any, sentence: str) -> None:
    runtime = runtime_of(answering("X", pre_enqueue=answer))
    reports: list[str] = []
    runtime.handle.report = reports.append
    runtime.handle.on_failure = lambda failure: reports.append(
        running(failure.step, "X") + f": {describe(failure.error)}"
    )
    status = runtime.run_pre_enqueue(make_pod(), "")
    assert status == Status.error(f'running PreEnqueue plugin "X": {sentence}').by("X")
    assert reports == [f'running PreEnqueue plugin "X": {sentence}']


def test_a_plugin_that_cannot_be_made_is_named() -> None:
    class X(Plugin):
        depends_on = DependsOn(node=NodePart.OBJECT)

        def __init__(self, args: Any, handle: Any) -> None:
            raise RAISED

        def filter_node(self, _cycle: Any, _node: Any) -> bool:
            return True

    with pytest.raises(
        PluginError, match=r'^initializing plugin "X": LookupError: no such rack \(test_answers.py:\d+\)$'
    ):
        runtime_of(X)
