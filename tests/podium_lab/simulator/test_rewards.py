"""Rewards of pods in a simulation, and what OnlineScore makes of them: it learns, and learns again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from podium.cluster import Cluster
from podium.load.readings import GivenLoad
from podium_lab.simulator.nodes import plain_node
from podium_lab.simulator.pods import PodTemplate, plain_spec
from podium_lab.simulator.rewards import RewardGiver
from podium_lab.simulator.scenario import RewardPhase, RewardRules, ScenarioError, UsageModel
from podium_lab.simulator.usage import UsageMeter
from tests.podium_lab.simulator.scenarios import EXAMPLES, SMALL, course, loaded, run_one

SHIFT = (EXAMPLES / "online-shift.yaml").read_text()
QUICKER = ("duration=3h", "generate.count=2000", "rewards.phases.1.at=90m", "checkpoints.every=15m")
FALLBACK, LEARNER = 1, 2


def giver(*phases: RewardPhase, noise: float = 0.0) -> tuple[RewardGiver, UsageMeter]:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.set_node(plain_node(name, {"cpu": 4, "memory": "8Gi"}, {"pool": name}))
    usage = UsageMeter(UsageModel(), cluster, GivenLoad(), None)
    for number in range(4):
        usage.pod_added(
            str(number), "a", PodTemplate(plain_spec({"cpu": 1, "memory": "1Gi"})), (0.5, 0.0, 0.0, 0.0, 1e7)
        )
    usage.measure(60.0, 60.0)
    rules = RewardRules(noise=noise, network_full=4e7, phases=list(phases))
    return RewardGiver(rules, usage, cluster, np.random.default_rng(1)), usage


def test_a_reward_is_what_load_and_labels_leave_of_1() -> None:
    """Half of the cpu, a quarter of the memory, half of the network, by their squares."""
    found, _ = giver(RewardPhase(cpu=0.4, memory=0.8, network=0.2, labels={"pool=b": 0.3}))
    assert found.reward("a", 60.0) == pytest.approx(1 - 0.4 / 4 - 0.8 / 16 - 0.2 / 4, abs=0.0005)
    assert found.reward("b", 60.0) == 0.7
    mean, recent = found.figures()
    assert [mean, recent] == pytest.approx([0.75, 75])
    assert math.isnan(found.figures()[1]), "none since then"


def test_the_last_phase_that_has_begun_counts() -> None:
    from podium.config.durations import Duration

    found, _ = giver(RewardPhase(labels={"pool=b": 0.3}), RewardPhase(at=Duration.parse("1m"), labels={"pool=b": 0.6}))
    assert [found.reward("b", time) for time in (0.0, 59.0, 60.0)] == [0.7, 0.7, 0.4]


def test_rewards_stay_between_0_and_1() -> None:
    found, _ = giver(RewardPhase(labels={"pool=b": 1.0}), noise=1.0)
    rewards = [found.reward(name, 0.0) for name in "ab" * 100]
    assert min(rewards) == 0
    assert max(rewards) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("rewards: {}", "rewards go by load, so the scenario needs usage"),
        ("usage: {}\nrewards: {after: soon}", "expected a duration"),
        ("usage: {}\nrewards: {phases: [{at: 2h}, {at: 1h}]}", "in the order of their times"),
        ("usage: {}\nrewards: {phases: [{labels: {pool: 0.5}}]}", "write it as key=value"),
        ("usage: {}\nrewards: {noise: 2}", "<= 1"),
    ],
)
def test_mistakes_are_told(wrong: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        loaded(SMALL + wrong)


def test_a_scenario_without_rewards_has_none() -> None:
    assert all(math.isnan(each) for each in course(run_one(SMALL), "reward_mean"))


def test_the_learner_beats_its_fallback_and_does_so_again_after_a_change_the_same_way_each_time() -> None:
    fallback, learner = (run_one(SHIFT, *QUICKER, profile=profile) for profile in (FALLBACK, LEARNER))
    ahead = np.subtract(course(learner, "reward_recent_pct"), course(fallback, "reward_recent_pct"))
    before, after = ahead[1:6], ahead[8:12]
    assert before.min() > 3, "from the second quarter of an hour on"
    assert after.min() > 3, "half an hour after the change"
    again = run_one(SHIFT, *QUICKER, profile=LEARNER)
    assert np.array_equal(again.table, learner.table, equal_nan=True)
