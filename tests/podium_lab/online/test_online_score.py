"""OnlineScore in the engine: who decides and why, what the model prefers, and that nothing ever fails a pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from podium.cluster import Nodes
from podium.framework import Cycle, ManualClock, PluginError
from podium.framework.pod_outcomes import REWARD
from podium.kube import Pod
from podium.load.readings import GivenLoad
from podium.load.settings import SourceSettings
from podium_lab.online import OnlineScore
from podium_lab.online.args import LoadMetric, OnlineScoreArgs
from tests.podium.engine.schedulers import World
from tests.podium.plugins.load_scores import problems_of
from tools.kit.builders import make_node, make_pod

ADDRESS = "http://prometheus:9090"
SOURCE = SourceSettings(address=ADDRESS)
CPU = {"name": "cpu", "query": "cpu", "full": 100}
LOADS = {"a0": 20.0, "a1": 20.0, "b0": 10.0, "b1": 10.0}
"""The pool b has less load, so the fallback prefers it."""


class Bed:
    """Two pools with a scheduler that learns, and pods that come, get a node, and say how they fare there."""

    def __init__(self, clock: ManualClock | None = None, **args: Any) -> None:
        self.load = GivenLoad()
        given = {"prometheusAddress": ADDRESS, "metrics": [CPU], "classLabel": "pool", **args}
        self.world = World("OnlineScore", args={"OnlineScore": given}, load=self.load, clock=clock)
        self.clock = self.world.clock
        self.world.add(*(make_node(name, cpu=64, memory="256Gi", labels={"pool": name[0]}) for name in LOADS))
        (runtime,) = self.world.scheduler.profiles.values()
        plugin = runtime.plugins["OnlineScore"]
        assert isinstance(plugin, OnlineScore)
        self.plugin = plugin
        self.number = 0
        self.measure(LOADS)

    def measure(self, values: dict[str, float]) -> None:
        self.load.set(LoadMetric(**CPU).series(SOURCE), values, self.clock.now())  # type: ignore[arg-type]

    def place(self, reward: Callable[[str], str] | None = None) -> str:
        """Where a pod goes; what it then says of its node. It is gone after that."""
        self.number += 1
        pod = make_pod(f"p{self.number}", requests={"cpu": "100m"})
        self.world.attempt(pod)
        name, node = self.world.bound[-1]
        assert name == pod.name
        bound = replace(pod, spec=replace(pod.spec, node_name=node))
        self.world.add(bound)
        self.clock.advance(2.0)
        if reward is not None:
            self.world.add(rewarded(bound, reward(node)))
        self.world.intake.delete(bound)
        return node

    def teach(self, rewards: int, reward: Callable[[str], str]) -> None:
        """Rewards of pods on any node, as if another scheduler had spread them."""
        rng = np.random.default_rng(1)
        for _ in range(rewards):
            self.number += 1
            pod = make_pod(f"t{self.number}", requests={"cpu": "100m"})
            self.plugin.answer_key(pod)
            node = list(LOADS)[int(rng.integers(len(LOADS)))]
            bound = replace(pod, spec=replace(pod.spec, node_name=node))
            self.world.add(bound)
            self.clock.advance(2.0)
            self.world.add(rewarded(bound, reward(node)))
            self.world.intake.delete(bound)

    @property
    def sources(self) -> dict[str, int]:
        return {source: number for source, number in self.plugin.guard.fallbacks.items() if number}

    def decided(self) -> str:
        """Who decides about the next pod; it is placed, whatever happens."""
        self.plugin.guard.fallbacks.clear()
        self.place()
        (source,) = self.sources
        return source


def rewarded(pod: Pod, text: str) -> Pod:
    metadata = replace(pod.metadata, annotations={**pod.metadata.annotations, REWARD: text})
    return replace(pod, metadata=metadata)


def a_is_better(node: str) -> str:
    return "0.9" if node[0] == "a" else "0.4"


def test_it_begins_with_the_fallback_and_ends_where_pods_fare_better() -> None:
    bed = Bed(explore=0)
    first = [bed.place(a_is_better) for _ in range(20)]
    assert {node[0] for node in first} == {"b"}, "the fallback goes by load alone"
    assert bed.sources == {"few": 20}
    bed.teach(100, a_is_better)
    assert {bed.place(a_is_better)[0] for _ in range(20)} == {"a"}
    assert bed.decided() == ""


def test_load_that_costs_rewards_is_avoided() -> None:
    bed = Bed(classLabel="", explore=0)
    rng = np.random.default_rng(3)

    def by_load(node: str) -> str:
        return f"{1 - bed.load.followed[next(iter(bed.load.followed))].values[node] / 100:.3f}"

    for _ in range(100):
        bed.measure(dict(zip(LOADS, rng.uniform(0, 100, 4).tolist(), strict=True)))
        bed.teach(1, by_load)
    bed.measure({"a0": 90.0, "a1": 10.0, "b0": 90.0, "b1": 90.0})
    assert bed.place() == "a1"
    assert bed.decided() == ""


def test_in_shadow_mode_it_learns_and_the_fallback_decides() -> None:
    bed = Bed(mode="shadow")
    bed.teach(100, a_is_better)
    assert bed.plugin.learner.models[""].rewards == 100
    assert bed.place()[0] == "b"
    assert bed.decided() == "shadow"


def test_rewards_may_come_from_load_itself() -> None:
    """The pool b is idle when pods are placed, and busy whenever one looks two minutes later."""
    bed = Bed(rewards="load", rewardAfter="10s", explore=0)
    rng = np.random.default_rng(4)
    for _ in range(100):
        bed.measure(LOADS)
        pod = make_pod(f"t{bed.number}", requests={"cpu": "100m"})
        bed.number += 1
        bed.plugin.answer_key(pod)
        node = list(LOADS)[int(rng.integers(4))]
        bound = replace(pod, spec=replace(pod.spec, node_name=node))
        bed.world.add(bound)
        bed.clock.advance(11.0)
        bed.measure({"a0": 20.0, "a1": 20.0, "b0": 90.0, "b1": 90.0})
        bed.world.add(bound)
        bed.world.intake.delete(bound)
    assert bed.plugin.learner.outcomes == {"learnt": 100}
    bed.measure(LOADS)
    assert bed.place()[0] == "a"


# Why the fallback decides


def test_few_rewards() -> None:
    bed = Bed(fewRewards=30)
    bed.teach(29, a_is_better)
    assert bed.decided() == "few"
    bed.teach(2, a_is_better)
    assert bed.decided() == ""


def test_a_model_that_is_unsure() -> None:
    bed = Bed(mostWidth=0.0)
    bed.teach(100, a_is_better)
    assert bed.decided() == "unsure"


def test_measurements_that_are_gone() -> None:
    bed = Bed()
    bed.teach(100, a_is_better)
    assert bed.decided() == ""
    bed.measure({"a0": 20.0})
    assert bed.decided() == "stale"
    bed.measure({})
    assert bed.decided() == "stale"
    bed.measure(LOADS)
    assert bed.decided() == ""


def test_a_world_that_has_changed() -> None:
    bed = Bed()
    bed.teach(100, a_is_better)
    while not bed.plugin.learner.models[""].changes:
        bed.teach(1, lambda node: "0.1" if node[0] == "a" else "0.9")
        assert bed.number < 140
    bed.teach(1, lambda node: "0.1" if node[0] == "a" else "0.9")
    assert bed.decided() == "drift"
    bed.teach(60, lambda node: "0.1" if node[0] == "a" else "0.9")
    assert bed.decided() == ""
    assert bed.place()[0] == "b"


def test_a_model_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Bed()
    bed.teach(100, a_is_better)

    def fails(*_: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(bed.plugin, "_standing", fails)
    seen = []
    for _ in range(8):
        bed.measure(LOADS)
        seen.append(bed.decided())
    assert seen == ["exception"] * 5 + ["breaker_open"] * 3
    assert len(bed.world.bound) == 8
    assert any("broken; the fallback decides" in report for report in bed.world.reports)


def test_a_model_that_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Bed()
    bed.teach(100, a_is_better)
    monkeypatch.setattr(bed.plugin, "_standing", lambda _kind: np.full(4, np.nan))
    bed.measure(LOADS)
    assert bed.decided() == "nan"


class SlowClock(ManualClock):
    """Time passes between any two looks at it, once it is slow."""

    step = 0.0

    def now(self) -> float:
        self.advance(self.step)
        return super().now()


def test_a_model_that_is_slow_is_not_asked() -> None:
    clock = SlowClock(1_000_000.0)
    bed = Bed(clock, deadline="5ms")
    bed.teach(100, a_is_better)
    clock.step = 0.02
    bed.measure(LOADS)
    assert bed.decided() == "", "the first is late"
    assert bed.plugin.guard.overruns == 1
    bed.measure(LOADS)
    assert bed.decided() == "timeout"


def test_where_nothing_at_all_is_measured_requests_decide() -> None:
    bed = Bed()
    bed.measure({})
    bed.world.add(*(make_pod(f"big-{name}", requests={"cpu": "32"}, node=name) for name in ("a0", "a1", "b0")))
    assert bed.place() == "b1"
    assert bed.sources == {"few": 1}


def test_events_that_cannot_be_learnt_from_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Bed()
    bed.teach(60, a_is_better)

    def fails(*_: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(bed.plugin.learner, "heard", fails)
    for _ in range(10):
        bed.place(a_is_better)
    assert len(bed.world.bound) == 10


def test_scores_stay_between_0_and_100_whatever_is_learnt() -> None:
    bed = Bed()
    rng = np.random.default_rng(5)
    bed.teach(100, lambda _node: f"{rng.uniform():.3f}")
    for values in (LOADS, dict.fromkeys(LOADS, 0.0), dict.fromkeys(LOADS, 1e9), {"a0": 100.0, "b0": 0.0, "b1": 50.0}):
        bed.measure(values)
        cluster = bed.world.cluster
        scores = bed.plugin.score(Cycle(make_pod("q"), cluster), Nodes(cluster))
        assert len(scores) == 4
        assert scores.min() >= 0
        assert scores.max() <= 100


def test_decisions_see_at_most_one_new_model_a_refresh() -> None:
    bed = Bed(refresh="1h")
    bed.teach(1, a_is_better)
    first = bed.plugin.published[""]
    bed.teach(100, a_is_better)
    assert bed.plugin.published[""] is first
    bed.clock.advance(3600.0)
    bed.teach(1, a_is_better)
    assert bed.plugin.published[""].model.rewards >= 101


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"metrics": []}, "metrics"),
        ({"metrics": [{"name": "x", "query": " "}]}, "metrics[0].query"),
        ({"metrics": [{"query": "x"}]}, "metrics[0].name"),
        ({"metrics": [{"name": "x", "query": "x", "full": 0}]}, "metrics[0].full"),
        ({"forgetting": 1.1}, "forgetting"),
        ({"explore": -1}, "explore"),
        ({"neighbours": 11}, "neighbours"),
        ({"fewRewards": 0}, "fewRewards"),
        ({"mostWidth": 2}, "mostWidth"),
        ({"configMap": "No Name"}, "configMap"),
        ({"prometheusAddress": "nowhere"}, "prometheusAddress"),
        ({"prometheusAddress": ADDRESS, "source": {"address": ADDRESS}}, "source.address"),
    ],
)
def test_arguments_that_cannot_be(args: dict[str, Any], field: str) -> None:
    assert problems_of(OnlineScoreArgs, args) == [field]


def test_it_must_be_told_where_load_is_measured() -> None:
    with pytest.raises(PluginError, match="prometheusAddress"):
        World("OnlineScore")


def test_a_node_gets_the_same_score_alone_and_among_others_and_a_new_one_is_like_the_others() -> None:
    bed = Bed()
    rng = np.random.default_rng(6)
    bed.teach(100, lambda node: f"{(0.7 if node[0] == 'a' else 0.4) + rng.uniform(0, 0.2):.3f}")
    cluster = bed.world.cluster
    bed.world.add(make_pod("big", requests={"cpu": "20"}, node="a1"))
    pod = make_pod("q", requests={"cpu": "1"})
    together = bed.plugin.score(Cycle(pod, cluster), Nodes(cluster)).tolist()
    alone = [bed.plugin.score(Cycle(pod, cluster), Nodes(cluster, np.array([row])))[0] for row in range(4)]
    assert alone == together
    assert bed.decided() == ""
    bed.world.add(make_node("c0", cpu=64, memory="256Gi"))
    scores = dict(zip(cluster.names, bed.plugin.score(Cycle(pod, cluster), Nodes(cluster)).tolist(), strict=True))
    assert scores["b0"] < scores["c0"] < scores["a0"]


def test_load_that_costs_a_pod_costs_its_neighbours_as_much() -> None:
    def scored(neighbours: float) -> list[float]:
        bed = Bed(classLabel="", neighbours=neighbours)
        rng = np.random.default_rng(3)
        for _ in range(100):
            bed.measure(dict(zip(LOADS, rng.uniform(0, 100, 4).tolist(), strict=True)))
            bed.teach(1, lambda node: f"{1 - bed.load.followed[series].values[node] / 200:.3f}")
        model = bed.plugin.published[""].model
        return [model.weights[1], float(bed.plugin._weights(model)[1])]

    series = LoadMetric(**CPU).series(SOURCE)  # type: ignore[arg-type]
    alone, together = scored(0), scored(1)
    assert alone[0] == alone[1] == together[0] == pytest.approx(-0.5, abs=0.05)
    assert together[1] == pytest.approx(2 * together[0])
