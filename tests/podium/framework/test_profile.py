"""What each status means at each extension point, in which order plugins run, and the words of every failure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.cluster import NodeInfo, Nodes
from podium.engine.decide import find_feasible
from podium.engine.sampling import Sampling
from podium.framework import SKIP, Code, Cycle, Nomination, Normalizer, Plugin, PluginError, Scores, Status, Wait
from podium.framework.diagnosis import Diagnosis, NodeStatuses, PostFilterResult
from podium.framework.profile import ProfileRuntime
from podium.framework.timer import Step
from podium.kube import Pod
from tests.podium.framework.runtimes import answering, cycle_of, make_runtime
from tools.kit.builders import make_cluster, make_handle, make_node, make_pod

FINE = Status(Code.SUCCESS)
UNSCHEDULABLE = Status.unschedulable("full", "closed")
UNRESOLVABLE = Status.unresolvable("gone")
PENDING = Status.pending("not yet")
ERROR = Status.error("broken")
WAIT = Status(Code.WAIT)

REJECTIONS = [UNSCHEDULABLE, UNRESOLVABLE, PENDING]


def runtime_of(*plugins: type[Plugin] | str, **options: Any) -> ProfileRuntime:
    """A profile on two empty nodes, n1 and n2."""
    return make_runtime(make_cluster([make_node("n1"), make_node("n2")]), *plugins, **options)


def log_of(*names: str, **answers: Any) -> tuple[list[str], list[type[Plugin]]]:
    """Plugins of these names that note when a method of theirs is called; `answers` by "name_method"."""
    log: list[str] = []

    def method(name: str, point: str) -> Any:
        def respond(_self: Plugin, *_args: Any) -> Any:
            log.append(f"{name}.{point}")
            return answers.get(f"{name}_{point}")

        return respond

    points = ("pre_enqueue", "pre_filter", "pre_score", "reserve", "unreserve", "permit")
    return log, [type(name, (Plugin,), {point: method(name, point) for point in points}) for name in names]


def all_nodes(runtime: ProfileRuntime) -> Nodes:
    return Nodes(runtime.handle.cluster)


# PreEnqueue


def test_pre_enqueue_lets_in_what_nobody_objects_to() -> None:
    assert (
        runtime_of(answering("A", pre_enqueue=None), answering("B", pre_enqueue=FINE)).run_pre_enqueue(Pod(), "")
        is None
    )


@pytest.mark.parametrize("status", [*REJECTIONS, SKIP, WAIT, ERROR])
def test_pre_enqueue_holds_back_on_anything_but_success(status: Status) -> None:
    assert runtime_of(answering("A", pre_enqueue=status)).run_pre_enqueue(make_pod(), "") == status.by("A")


def test_pre_enqueue_stops_at_the_first_objection_and_asks_who_objected_last_first() -> None:
    log, plugins = log_of("A", "B", "C", B_pre_enqueue=UNRESOLVABLE, C_pre_enqueue=UNRESOLVABLE)
    runtime = runtime_of(*plugins)
    assert runtime.run_pre_enqueue(make_pod(), "") == UNRESOLVABLE.by("B")
    assert runtime.run_pre_enqueue(make_pod(), "C") == UNRESOLVABLE.by("C")
    assert log == ["A.pre_enqueue", "B.pre_enqueue", "C.pre_enqueue"]


# PreFilter


def pre_filter(*answers: Any) -> tuple[Any, Cycle]:
    """The outcome of plugins A, B, … with these answers."""
    plugins = [answering("ABCD"[number], pre_filter=answer) for number, answer in enumerate(answers)]
    runtime = runtime_of(*plugins)
    cycle = cycle_of(runtime, make_pod())
    return runtime.run_pre_filter(cycle), cycle


def test_pre_filter_that_skips_takes_its_filter_out_of_the_cycle() -> None:
    class Skips(Plugin):
        def pre_filter(self, _cycle: Cycle) -> Status:
            return SKIP

        def filter_node(self, _cycle: Cycle, _node: NodeInfo) -> bool:
            raise AssertionError("not to be asked")

        add_pod = remove_pod = filter_node

    runtime = runtime_of(Skips, answering("B", pre_filter=None))
    cycle = cycle_of(runtime, make_pod())
    assert runtime.run_pre_filter(cycle) == (None, None, frozenset())
    assert cycle.skipped_filters == {"Skips"}
    assert runtime.run_filters(cycle, all_nodes(runtime)).passed.all()
    assert runtime.run_filters_on(cycle, 0) is None
    placed = runtime.handle.cluster.stand_in(make_pod("other"), 0)
    runtime.add_pod(cycle, placed)
    runtime.remove_pod(cycle, placed)


def test_an_unresolvable_pod_is_turned_away_at_once() -> None:
    outcome, _ = pre_filter({"n1"}, UNRESOLVABLE, RuntimeError("never asked"))
    assert outcome == (UNRESOLVABLE.by("B"), None, frozenset())


def test_an_unschedulable_pod_is_turned_away_when_all_were_asked_by_the_last_who_said_so() -> None:
    outcome, cycle = pre_filter(UNSCHEDULABLE, {"n1"}, Status.unschedulable("later"), SKIP)
    assert outcome == (Status.unschedulable("later").by("C"), frozenset({"n1"}), frozenset({"B"}))
    assert cycle.skipped_filters == {"D"}


@pytest.mark.parametrize("status", [PENDING, ERROR, WAIT])
def test_any_other_status_at_pre_filter_fails_the_cycle(status: Status) -> None:
    with pytest.raises(PluginError) as failure:
        pre_filter(None, status)
    assert str(failure.value) == f'running PreFilter plugin "B": {status.message}'


@pytest.mark.parametrize(
    ("answers", "left", "message"),
    [
        pytest.param([None, {"n1", "n2"}, {"n2", "n3"}], {"n2"}, None, id="what all name"),
        pytest.param([{"n1"}, None], {"n1"}, None, id="None restricts nothing"),
        pytest.param([None, set()], None, "node(s) didn't satisfy plugin B", id="one names none"),
        pytest.param(
            [{"n1"}, None, {"n2"}], None, "node(s) didn't satisfy plugin(s) [A C] simultaneously", id="two have none"
        ),
        pytest.param(
            [{"n1"}, {"n1"}, set(), RuntimeError("never asked")],
            None,
            "node(s) didn't satisfy plugin(s) [A B C] simultaneously",
            id="all who named any are named",
        ),
        pytest.param(
            [UNSCHEDULABLE, set()], None, "node(s) didn't satisfy plugin B", id="this goes before an earlier refusal"
        ),
    ],
)
def test_node_names_are_intersected(answers: list[Any], left: set[str] | None, message: str | None) -> None:
    outcome, _ = pre_filter(*answers)
    named = frozenset("ABCD"[number] for number, answer in enumerate(answers) if isinstance(answer, set))
    if message is None:
        assert outcome == (None, left, named)
    else:
        assert outcome == (Status.unresolvable(message), frozenset(), named)


# Filter


@pytest.mark.parametrize("status", REJECTIONS)
def test_the_first_filter_to_refuse_a_node_decides_and_the_rest_are_not_asked_about_it(status: Status) -> None:
    asked: list[str] = []

    class Second(Plugin):
        def filter_node(self, _cycle: Cycle, node: NodeInfo) -> None:
            asked.append(node.name)

    class First(Plugin):
        def filter_node(self, _cycle: Cycle, node: NodeInfo) -> Status:
            return status if node.name == "n1" else FINE

    runtime = runtime_of(First, Second)
    refusals = runtime.run_filters(cycle_of(runtime, make_pod()), all_nodes(runtime))
    assert [refusals.status(0), refusals.status(1)] == [status.by("First"), None]
    assert asked == ["n2"]
    assert runtime.run_filters_on(cycle_of(runtime, make_pod()), 0) == status.by("First")


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (ERROR, ERROR.message),
        (SKIP, "filter_node must give a Status that refuses the node, got SKIP"),
        (WAIT, "filter_node must give a Status that refuses the node, got WAIT"),
    ],
)
def test_any_other_status_of_a_filter_fails_the_cycle(status: Status, sentence: str) -> None:
    runtime = runtime_of(answering("A", filter_node=status))
    sentence = f'running "A" filter plugin: {sentence}'
    for ask in (
        lambda cycle: runtime.run_filters(cycle, all_nodes(runtime)),
        lambda cycle: runtime.run_filters_on(cycle, 0),
    ):
        with pytest.raises(PluginError) as failure:
            ask(cycle_of(runtime, make_pod()))
        assert str(failure.value) == sentence


# PostFilter


def post_filter(*answers: Any) -> PostFilterResult:
    plugins = [answering("ABC"[number], post_filter=answer) for number, answer in enumerate(answers)]
    runtime = runtime_of(*plugins)
    return runtime.run_post_filter(cycle_of(runtime, make_pod()), Diagnosis(2, NodeStatuses(2)))


N1, N2 = Nomination("n1"), Nomination("n2")


@pytest.mark.parametrize(
    ("answers", "result"),
    [
        pytest.param(
            [PostFilterResult(UNSCHEDULABLE, N2), PostFilterResult(None, N1), RuntimeError("never asked")],
            PostFilterResult(None, N1),
            id="the first success ends it",
        ),
        pytest.param([PostFilterResult(FINE)], PostFilterResult(None), id="a success may leave the nomination alone"),
        pytest.param(
            [PostFilterResult(UNSCHEDULABLE, N1), PostFilterResult(PENDING)],
            PostFilterResult(Status.unschedulable("full", "closed", "not yet").by("A"), N1),
            id="refusals are collected, the last nomination stays",
        ),
        pytest.param(
            [PostFilterResult(UNSCHEDULABLE, N1), PostFilterResult(PENDING, N2)],
            PostFilterResult(Status.unschedulable("full", "closed", "not yet").by("A"), N2),
            id="a later nomination replaces an earlier one",
        ),
        pytest.param(
            [PostFilterResult(UNSCHEDULABLE), PostFilterResult(UNRESOLVABLE, N1), RuntimeError("never asked")],
            PostFilterResult(UNRESOLVABLE.by("B"), N1),
            id="an unresolvable pod ends it",
        ),
        *(
            pytest.param(
                [PostFilterResult(UNSCHEDULABLE, N1), PostFilterResult(status), RuntimeError("never asked")],
                PostFilterResult(Status(Code.ERROR, status.reasons, "B")),
                id=f"{status.code.name} is an error",
            )
            for status in (ERROR, SKIP, WAIT)
        ),
    ],
)
def test_post_filter(answers: list[Any], result: PostFilterResult) -> None:
    assert post_filter(*answers) == result


# Scores


def test_pre_score_that_skips_takes_its_score_out_of_the_sum() -> None:
    runtime = runtime_of(
        answering("A", pre_score=SKIP, score_node=50), answering("B", score_node=7), weights={"A": 1, "B": 3}
    )
    cycle = cycle_of(runtime, make_pod())
    runtime.run_pre_score(cycle, all_nodes(runtime))
    table = runtime.run_scores(cycle, all_nodes(runtime))
    assert ({name: each.tolist() for name, each in table.by_plugin.items()}, table.total.tolist()) == (
        {"B": [21, 21]},
        [21, 21],
    )


@pytest.mark.parametrize("status", [*REJECTIONS, ERROR, WAIT])
def test_any_other_status_at_pre_score_fails_the_cycle(status: Status) -> None:
    runtime = runtime_of(answering("A", pre_score=status, score_node=0))
    with pytest.raises(PluginError) as failure:
        runtime.run_pre_score(cycle_of(runtime, make_pod()), all_nodes(runtime))
    assert str(failure.value) == f'running PreScore plugin "A": {status.message}'


def test_scores_are_normalised_then_weighted_then_added() -> None:
    class Raw(Plugin):
        normalizer = Normalizer.DEFAULT

        def score(self, _cycle: Cycle, _nodes: Nodes) -> Scores:
            return np.array([3, 1000])

    class Own(Plugin):
        def score(self, _cycle: Cycle, _nodes: Nodes) -> Scores:
            return np.array([-5, 1])

        def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
            shifted: Scores = scores - scores.min()
            return shifted

    runtime = runtime_of(Raw, Own, weights={"Raw": 2, "Own": 10})
    table = runtime.run_scores(cycle_of(runtime, make_pod()), all_nodes(runtime))
    assert {name: each.tolist() for name, each in table.by_plugin.items()} == {"Raw": [0, 200], "Own": [0, 60]}
    assert table.total.tolist() == [0, 260]


# Reserve and Permit


@pytest.mark.parametrize("point", ["reserve", "permit"])
@pytest.mark.parametrize("status", [*REJECTIONS, ERROR, SKIP, WAIT])
def test_a_refusal_after_the_choice_ends_it_and_anything_else_is_an_error(point: str, status: Status) -> None:
    runtime = runtime_of(answering("A", **{point: FINE}), answering("B", **{point: status}))
    answer = getattr(runtime, f"run_{point}")(cycle_of(runtime, make_pod()), "n1")
    if status.rejected:
        assert answer == status.by("B")
    else:
        assert answer == Status.error(f'running {point.title()} plugin "B": {status.message}').by("B")


def test_unreserve_runs_backwards_through_all_plugins_even_those_never_reserved() -> None:
    log, plugins = log_of("A", "B", "C", B_reserve=UNSCHEDULABLE)
    runtime = runtime_of(*plugins)
    cycle = cycle_of(runtime, make_pod())
    assert runtime.run_reserve(cycle, "n1") == UNSCHEDULABLE.by("B")
    runtime.run_unreserve(cycle, "n1")
    assert log == ["A.reserve", "B.reserve", "C.unreserve", "B.unreserve", "A.unreserve"]


def test_what_one_unreserve_raises_is_reported_and_keeps_nobody_from_undoing() -> None:
    log, plugins = log_of("A")
    cluster = make_cluster([make_node("n1")])
    handle, reports = make_handle(cluster), list[tuple[str, Step]]()
    handle.on_failure = lambda failure: reports.append((failure.plugin, failure.step))
    runtime = make_runtime(cluster, *plugins, answering("B", unreserve=KeyError("n1")), handle=handle)
    runtime.run_unreserve(cycle_of(runtime, make_pod()), "n1")
    assert (log, reports) == (["A.unreserve"], [("B", Step.UNRESERVE)])


def test_permit_collects_how_long_each_plugin_wants_to_wait() -> None:
    log, plugins = log_of("A", "B", "C", A_permit=Wait(30), C_permit=Wait(1.5, "soon"))
    runtime = runtime_of(*plugins)
    assert runtime.run_permit(cycle_of(runtime, make_pod()), "n1") == {"A": 30, "C": 1.5}
    assert log == ["A.permit", "B.permit", "C.permit"]


def test_a_refusal_at_permit_goes_before_an_earlier_wait() -> None:
    runtime = runtime_of(answering("A", permit=Wait(30)), answering("B", permit=UNRESOLVABLE))
    assert runtime.run_permit(cycle_of(runtime, make_pod()), "n1") == UNRESOLVABLE.by("B")


# What is left to a filter


@pytest.mark.parametrize("named", [False, True], ids=["all nodes", "some that PreFilter named"])
def test_a_filter_can_ask_which_nodes_are_undecided_in_visiting_order(named: bool) -> None:
    seen: list[list[str]] = []

    class Names(Plugin):
        def pre_filter(self, cycle: Cycle) -> frozenset[str] | None:
            return frozenset({"n1", "n2", "n3"}) if named else None

    class Closes(Plugin):
        def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
            return "closed" if node.name == "n2" else None

    class Asks(Plugin):
        def filter(self, cycle: Cycle, nodes: Nodes) -> None:
            every = np.arange(cycle.cluster.columns.rows)
            seen.append([cycle.cluster.names[row] for row in cycle.undecided_rows(every).tolist()])

    cluster = make_cluster([make_node(f"n{number}") for number in range(1, 5)])
    runtime = make_runtime(cluster, Names, Closes, Asks)
    find_feasible(runtime, cycle_of(runtime, make_pod()), Sampling(100, parity=True, next_start=2))
    assert seen == [["n3", "n1"] if named else ["n3", "n4", "n1"]]
