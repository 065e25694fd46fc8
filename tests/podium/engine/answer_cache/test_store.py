"""Which answers are kept, for how long, and that keeping them changes nothing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Hashable
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.cluster import NodeInfo, Nodes
from podium.engine.answer_cache import store
from podium.engine.answer_cache.store import AnswerCache
from podium.engine.decide import NodeSearch, decide
from podium.engine.sampling import Sampling
from podium.framework import Cycle, DependsOn, NodePart, Plugin, PluginError, Scores, Status, Verdict
from podium.framework.profile import ProfileRuntime
from podium.kube import Pod
from tests.podium.engine.schedulers import World
from tests.podium.framework.runtimes import answering, cycle_of, make_runtime
from tools.kit.builders import make_cluster, make_node, make_pod
from tools.kit.effort import examples
from tools.kit.storage import claim_volume, make_claim, make_csi_node, make_volume, pod_with

NUMBERS = count()


class Doors(Plugin):
    """Lets a pod through where the node's label says so; fails where it says "broken". Looks at nothing else."""

    depends_on = DependsOn(node=NodePart.OBJECT)
    asked: list[int]

    def filter(self, _cycle: Cycle, nodes: Nodes) -> Verdict:
        type(self).asked.append(len(nodes))
        door = [self.handle.cluster.nodes[row] for row in nodes.rows.tolist()]
        states = ["" if node is None else node.labels.get("door", "") for node in door]
        said = (Status.unschedulable("closed"), Status.error("no handle"))
        codes = np.array([{"closed": 1, "broken": 2}.get(state, 0) for state in states])
        return Verdict(codes, lambda code: said[code - 1], fails="broken" in states)


class Rooms(Plugin):
    """Likes nodes by their label."""

    depends_on = DependsOn(node=NodePart.OBJECT)

    def score_node(self, _cycle: Cycle, node: NodeInfo) -> int:
        return int(node.labels.get("rooms", 0))


def rooms(*labels: dict[str, str], plugins: tuple[Any, ...] = (Doors, Rooms)) -> ProfileRuntime:
    Doors.asked = []
    nodes = [make_node(f"n{number}", labels=each) for number, each in enumerate(labels)]
    return make_runtime(make_cluster(nodes), *plugins)


def ask(
    remembered: AnswerCache,
    runtime: ProfileRuntime,
    pod: Pod | None = None,
    sampling: Sampling | None = None,
    *,
    same: bool = False,
) -> int | NodeSearch | None:
    """Ask about another pod of a kind, or about the very same."""
    pod = pod or make_pod()
    if not same:
        pod = replace(pod, metadata=replace(pod.metadata, uid=f"uid-{next(NUMBERS)}"))
    return remembered.decide(runtime, cycle_of(runtime, pod), sampling or Sampling())


# What is kept


def test_a_kind_is_worth_keeping_when_one_pod_of_it_comes_for_the_third_time() -> None:
    runtime, remembered = rooms({}, {"rooms": "5"}), AnswerCache()
    assert [ask(remembered, runtime, same=True) for _ in range(4)] == [None, None, 1, 1]


def test_a_kind_of_pod_is_worth_keeping_when_a_second_pod_of_it_comes() -> None:
    runtime, remembered = rooms({}, {"rooms": "5"}), AnswerCache()
    assert ask(remembered, runtime, make_pod("a")) is None
    assert ask(remembered, runtime, make_pod("b")) == 1
    assert ask(remembered, runtime, make_pod("c", labels={"of": "another kind"})) is None
    assert ask(remembered, runtime, make_pod("d")) == 1
    assert Doors.asked == [2], "asked once, of all nodes"


def test_only_rows_that_changed_are_asked_about_again() -> None:
    runtime, remembered = rooms(*[{"rooms": "1"}] * 20), AnswerCache()
    chosen = [ask(remembered, runtime) for _ in range(2)]
    runtime.handle.cluster.set_node(make_node("n7", labels={"rooms": "9"}))
    runtime.handle.cluster.set_node(make_node("n3", labels={"rooms": "9", "door": "closed"}))
    assert [*chosen, ask(remembered, runtime)] == [None, 0, 7]
    assert Doors.asked == [20, 2]


@pytest.mark.parametrize(
    ("plugins", "pod", "sampling"),
    [
        pytest.param((Doors, Rooms), make_pod(status={"nominatedNodeName": "n1"}), Sampling(), id="nominated pods"),
        pytest.param((Doors,), make_pod(), Sampling(), id="profiles without scores"),
        pytest.param((Rooms,), make_pod(), Sampling(), id="profiles without filters"),
        pytest.param((Doors, Rooms), make_pod(), Sampling(percentage=1), id="searches that stop early"),
    ],
)
def test_what_is_not_kept(plugins: Any, pod: Pod, sampling: Sampling) -> None:
    runtime, remembered = rooms(*[{}] * 120, plugins=plugins), AnswerCache()
    assert [ask(remembered, runtime, pod, sampling) for _ in range(3)] == [None] * 3
    assert remembered.get(runtime, cycle_of(runtime, pod)) is None


def test_pods_nominated_in_memory_go_the_long_way() -> None:
    runtime, remembered = rooms({}, {}), AnswerCache()
    runtime.handle.nominator.nominate(make_pod(), "n1")
    assert [ask(remembered, runtime, same=True) for _ in range(4)] == [None] * 4


@pytest.mark.parametrize(
    "answer", [frozenset({"n1"}), Status.unschedulable("no"), Status.unresolvable("no")], ids=["names", "no", "never"]
)
def test_a_kind_that_pre_filter_decides_on_is_tried_once_and_never_again(answer: Any) -> None:
    asked = 0

    class Decides(Plugin):
        def pre_filter(self, _cycle: Cycle) -> Any:
            nonlocal asked
            asked += 1
            return answer

    runtime, remembered = rooms({}, {}, plugins=(Decides, Doors, Rooms)), AnswerCache()
    assert [ask(remembered, runtime) for _ in range(5)] == [None] * 5
    assert asked == 1


def test_a_rejection_by_pre_filter_that_may_change_leaves_the_answers_of_others_cached() -> None:
    class Patient(Plugin):
        waits = True

        def answer_key(self, _pod: Pod) -> bool:
            return self.waits

        def pre_filter(self, _cycle: Cycle) -> Status | None:
            return Status.unresolvable("not yet") if self.waits else None

    runtime, remembered = rooms({}, {}, plugins=(Patient, Doors, Rooms)), AnswerCache()
    assert [ask(remembered, runtime) for _ in range(4)] == [None] * 4
    runtime.plugins["Patient"].waits = False  # type: ignore[attr-defined]
    assert ask(remembered, runtime) is not None


def with_claim(name: str) -> Pod:
    return pod_with(claim_volume(name, "data"))


class Picky(Plugin):
    """Turns away pods whose claim is called "bad", and counts how often it is asked."""

    depends_on = DependsOn(node=NodePart.OBJECT)
    asked: list[str]

    def pre_filter(self, cycle: Cycle) -> Status | None:
        self.asked.append(cycle.facts.claims[0])
        return Status.unresolvable("no") if cycle.facts.claims == ("default/bad",) else None

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> bool:
        return node.labels.get("claim", "") in ("", *cycle.facts.claims)


def test_a_plugin_that_may_see_claims_is_asked_again_for_other_claims_and_the_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Doors, "depends_on", DependsOn(node=NodePart.OBJECT, claims=False))
    runtime, remembered = rooms({}, {"claim": "default/b", "rooms": "5"}, plugins=(Picky, Doors, Rooms)), AnswerCache()
    Picky.asked = []
    answers = [ask(remembered, runtime, with_claim(name)) for name in ("a", "a", "a", "b", "b", "a")]
    assert answers == [None, 0, 0, 1, 1, 0]
    assert Picky.asked == ["default/a", "default/b", "default/a"]
    assert Doors.asked == [2], "asked once, of all nodes"


def test_a_pod_that_is_turned_away_for_its_claims_leaves_what_is_kept_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Doors, "depends_on", DependsOn(node=NodePart.OBJECT, claims=False))
    runtime, remembered = rooms(*[{}] * 20, plugins=(Picky, Doors, Rooms)), AnswerCache()
    Picky.asked = []
    answers: list[Any] = [ask(remembered, runtime, with_claim(name)) for name in ("a", "a", "bad")]
    runtime.handle.cluster.set_node(make_node("n7", labels={"rooms": "9"}))
    answers += [ask(remembered, runtime, with_claim(name)) for name in ("bad", "a", "bad", "b")]
    assert answers == [None, 0, None, None, 7, None, 7]
    assert Doors.asked == [20, 1]


def test_a_volume_shared_with_a_pod_that_waits_for_the_node_is_told_apart() -> None:
    """The node can attach one volume more. Beside the pod nominated to it there is room for the same volume only."""
    claims = [make_claim(name, volume=f"v-{name}") for name in ("a", "b", "same")]
    volumes = [make_volume(f"v-{name}", driver="d") for name in ("a", "b", "same")]
    cluster = make_cluster([make_node("n1")], objects=[make_csi_node("n1", {"d": 1}), *claims, *volumes])
    runtime, remembered = make_runtime(cluster, default=True), AnswerCache()
    runtime.handle.nominator.nominate(pod_with(claim_volume("same", "data"), name="rival"), "n1")
    answers = [ask(remembered, runtime, with_claim(name)) for name in ("a", "b", "same", "a", "same")]
    fits = [None if answer is None else not isinstance(answer, NodeSearch) for answer in answers]
    assert fits == [None, False, True, False, True]


def test_profiles_keep_their_own() -> None:
    world = World(answering("Open", filter_node=None), Rooms, nodes=[make_node("n1")], profiles=("one", "two"))
    one, two = world.scheduler.profiles.values()
    remembered = AnswerCache()
    answers = [ask(remembered, runtime) for runtime in (one, two, one, two)]
    assert answers == [None, None, 0, 0]


# Bounds


def test_the_kinds_used_longest_ago_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, remembered = rooms({}, {}), AnswerCache()
    kinds = [make_pod(labels={"kind": str(number)}) for number in range(3)]
    for pod in kinds:
        ask(remembered, runtime, pod)
        ask(remembered, runtime, pod)
    kept = remembered.get(runtime, cycle_of(runtime, kinds[0]))
    assert kept is not None
    monkeypatch.setattr(store, "MOST_BYTES", 2 * kept.bytes)
    ask(remembered, runtime, kinds[0])
    new = make_pod(labels={"kind": "new"})
    ask(remembered, runtime, new)
    ask(remembered, runtime, new)
    left = [remembered.get(runtime, cycle_of(runtime, pod)) is not None for pod in (*kinds, new)]
    assert left == [True, False, False, True]


def test_so_are_the_kinds_met_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_SIGNATURES", 2)
    runtime, remembered = rooms({}, {}), AnswerCache()
    for name in "abc":
        ask(remembered, runtime, make_pod(labels={"kind": name}))
    answers = [ask(remembered, runtime, make_pod(labels={"kind": name})) for name in "ca"]
    assert answers == [0, None]


# Plugins that fail


def test_an_error_that_comes_up_later_fails_the_decision() -> None:
    runtime, remembered = rooms(*[{}] * 20), AnswerCache()
    assert [ask(remembered, runtime) for _ in range(2)] == [None, 0]
    runtime.handle.cluster.set_node(make_node("n4", labels={"door": "broken"}))
    assert ask(remembered, runtime) is None
    with pytest.raises(PluginError, match=r'^running "Doors" filter plugin: no handle$'):
        decide(runtime, cycle_of(runtime, make_pod()), Sampling())


@pytest.mark.parametrize("method", ["answer_key", "filter_node", "score_node"])
def test_a_plugin_that_raises_is_left_to_the_long_way_and_what_was_kept_is_dropped(method: str) -> None:
    class Moody(Plugin):
        good = True

        def _ask(self, point: str) -> None:
            if not self.good and point == method:
                raise LookupError("not today")

        def answer_key(self, _pod: Pod) -> Hashable:
            self._ask("answer_key")
            return None

        def filter_node(self, _cycle: Cycle, _node: NodeInfo) -> bool:
            self._ask("filter_node")
            return True

        def score_node(self, _cycle: Cycle, _node: NodeInfo) -> int:
            self._ask("score_node")
            return 1

    runtime, remembered = rooms({}, {}, plugins=(Moody,)), AnswerCache()
    assert [ask(remembered, runtime) for _ in range(2)] == [None, 0]
    Moody.good = False
    assert ask(remembered, runtime) is None
    assert remembered.get(runtime, cycle_of(runtime, make_pod())) is None
    Moody.good = True
    assert ask(remembered, runtime) == 0


# Nothing is decided differently


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["", "closed"]), st.integers(0, 1)), min_size=1, max_size=12),
    st.lists(st.integers(0, 30), min_size=1, max_size=4),
)
def test_kept_answers_follow_where_the_search_starts(nodes: list[tuple[str, int]], starts: list[int]) -> None:
    """Among equals the node is taken that a search from there would take, and the next search starts alike."""
    runtime, remembered = rooms(*({"door": door, "rooms": str(score)} for door, score in nodes)), AnswerCache()
    ask(remembered, runtime)
    for start in starts:
        kept, long = Sampling(next_start=start), Sampling(next_start=start)
        answer = ask(remembered, runtime, sampling=kept)
        expected = decide(runtime, cycle_of(runtime, make_pod()), long)
        assert (None if isinstance(answer, NodeSearch) else answer) == expected.row
        assert answer is not None
        assert kept == long


def test_a_pinned_pod_moves_the_start_for_those_that_follow() -> None:
    """It sees one node of four, so that is how far the next search starts behind the last one."""
    world = World(default=True, nodes=[make_node(f"n{number}") for number in range(4)])
    field = {"key": "metadata.name", "operator": "In", "values": ["n3"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    for number in range(3):
        world.attempt(make_pod(f"p{number}"))
        world.delete(make_pod(f"p{number}"))
    world.attempt(make_pod("pinned", spec={"affinity": affinity}))
    world.delete(make_pod("pinned"))
    assert world.scheduler.sampling.next_start == 1
    world.attempt(make_pod("p9"))
    assert world.bound == [("p0", "n0"), ("p1", "n0"), ("p2", "n0"), ("pinned", "n3"), ("p9", "n1")]


def test_scores_of_plugins_that_look_further_are_asked_for_again() -> None:
    class Fickle(Plugin):
        favourite = 0

        def score(self, _cycle: Cycle, nodes: Nodes) -> Scores:
            return np.where(nodes.rows == self.favourite, 100, 0)

    runtime, remembered = rooms({}, {}, {}, plugins=(Doors, Fickle)), AnswerCache()
    answers = [ask(remembered, runtime)]
    for favourite in (2, 1):
        Fickle.favourite = favourite
        answers.append(ask(remembered, runtime))
    assert answers == [None, 2, 1]


def test_scores_that_are_normalised_by_the_plugin_follow_the_pods_of_a_node() -> None:
    class Emptiest(Plugin):
        depends_on = DependsOn(node=NodePart.TOTALS)

        def score(self, _cycle: Cycle, nodes: Nodes) -> Scores:
            emptiness: Scores = 0 - nodes.pod_count
            return emptiness

        def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
            above: Scores = scores - scores.min()
            return above

    world = World(Doors, Emptiest, nodes=[make_node(f"n{number}") for number in range(3)])
    Doors.asked = []
    for number in range(6):
        world.attempt(make_pod(f"p{number}"))
    assert sorted(node for _pod, node in world.bound) == ["n0", "n0", "n1", "n1", "n2", "n2"]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["", "closed"]), st.integers(0, 1)), min_size=1, max_size=12),
    st.lists(st.integers(0, 30), min_size=1, max_size=4),
)
def test_ties_go_to_the_first_node_where_a_score_wants_that(nodes: list[tuple[str, int]], starts: list[int]) -> None:
    class InOrder(Rooms):
        first_of_equals = True

    labels = [{"door": door, "rooms": str(score)} for door, score in nodes]
    runtime, remembered = rooms(*labels, plugins=(Doors, InOrder)), AnswerCache()
    open_rooms = [(-score, row) for row, (door, score) in enumerate(nodes) if not door]
    first = min(open_rooms)[1] if open_rooms else None
    ask(remembered, runtime)
    for start in starts:
        answer = ask(remembered, runtime, sampling=Sampling(next_start=start))
        assert (None if isinstance(answer, NodeSearch) else answer) == first
        assert decide(runtime, cycle_of(runtime, make_pod()), Sampling(next_start=start)).row == first


def test_an_entry_that_is_dropped_is_freed_at_once() -> None:
    """Its arrays are large: they must not wait for the garbage collector."""
    cache, runtime = AnswerCache(), rooms({}, {"rooms": "2"})
    for _ in range(2):
        ask(cache, runtime)
    ((key, entry),) = cache._entries.items()
    filters, scores = weakref.ref(entry._filters), weakref.ref(entry._scores)
    del entry
    gc.disable()
    try:
        cache._drop(key)
        assert (filters(), scores()) == (None, None)
    finally:
        gc.enable()
