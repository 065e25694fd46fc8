"""Placements and rewards: each pair is learnt from once, the rest is refused and counted; what was learnt is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.framework.pod_outcomes import REWARD, PodOutcome
from podium_lab.online import learner as module
from podium_lab.online.learner import KEY, MOST_TYPES, OTHERS, OnlineLearner, StateFile, UnrewardedPod
from tools.kit.builders import build

FEATURES = ("one", "cpu")
X = np.array([1.0, 0.5])


def learner(**more: Any) -> OnlineLearner:
    return OnlineLearner(FEATURES, forgetting=0.99, within=3600.0, **more)


def placed(found: OnlineLearner, uid: str, at: float = 0.0, kind: str = "") -> None:
    found.placed(uid, UnrewardedPod(kind, "n1", X, at))


def taught(**more: Any) -> OnlineLearner:
    found = learner(**more)
    for number in range(20):
        placed(found, f"p{number}")
        found.heard(f"p{number}", "0.75", False, 10.0)
    return found


@pytest.mark.parametrize("text", ["NaN", "inf", "-0.1", "1.01", "good", "", " 0.5", "1e999"])
def test_what_is_no_number_from_0_to_1_is_refused(text: str) -> None:
    found = learner()
    placed(found, "a")
    found.heard("a", text, False, 1.0)
    assert found.outcomes == {"bad": 1}
    assert not found.models
    found.heard("a", "0.5", False, 2.0)
    assert found.outcomes == {"bad": 1, "learnt": 1}, "the pod may say better"


def test_a_pod_that_was_not_scored_here_teaches_nothing() -> None:
    found = learner()
    for _ in range(3):
        found.heard("stranger", "0.5", False, 1.0)
    assert found.outcomes == {"unknown": 1}
    assert not found.models


def test_a_reward_that_comes_too_late_is_refused() -> None:
    found = learner()
    placed(found, "a")
    found.heard("a", "0.5", False, 3600.1)
    assert found.outcomes == {"late": 1}
    assert not found.models


def test_the_same_word_again_is_no_second_reward_and_another_one_is_refused() -> None:
    found = learner()
    placed(found, "a")
    for _ in range(3):
        found.heard("a", "0.5", False, 1.0)
    found.heard("a", "0.9", False, 1.0)
    assert found.outcomes == {"learnt": 1, "twice": 1}
    assert found.models[""].rewards == 1
    assert found.sum_of_rewards == 0.5


def test_a_pod_that_fails_without_a_reward_has_the_lowest() -> None:
    found = learner()
    placed(found, "a")
    placed(found, "b")
    found.heard("a", None, True, 1.0)
    found.heard("b", "0.5", False, 1.0)
    found.heard("b", None, True, 2.0)
    assert found.outcomes == {"learnt": 2}
    assert found.sum_of_rewards == 0.5


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PLACEMENTS", 10)
    monkeypatch.setattr(module, "MOST_HEARD", 10)
    found = learner()
    for number in range(30):
        placed(found, f"p{number}")
        found.heard(f"q{number}", "0.5", False, 0.0)
    assert list(found.waiting) == [f"p{number}" for number in range(20, 30)]
    assert found.outcomes == {"none": 20, "unknown": 30}
    assert len(found._heard) == 10
    placed(found, "last", at=7201.0)
    assert list(found.waiting) == ["last"], "what is too old even to be called late is dropped"


def test_beyond_a_number_of_types_pods_share_a_model() -> None:
    found = learner()
    for number in range(MOST_TYPES + 5):
        placed(found, f"p{number}", kind=f"type-{number}")
        found.heard(f"p{number}", "0.5", False, 0.0)
    assert len(found.models) == MOST_TYPES + 1
    assert found.models[OTHERS].rewards == 5


# Keeping


def test_what_was_learnt_is_kept_and_recalled_exactly() -> None:
    before, after = taught(), learner()
    before.classes[:] = ["fast", "slow"]
    after.restore(before.save(0.0), 0.0)
    assert after.models[""].rewards == 20
    assert after.models[""].model().weights == before.models[""].model().weights
    assert after.classes == ["fast", "slow"]


def test_of_two_replicas_the_one_that_has_seen_more_is_right() -> None:
    more, fewer = taught(), learner()
    placed(fewer, "x")
    fewer.heard("x", "0.1", False, 0.0)
    weights = more.models[""].model().weights
    more.restore(fewer.save(0.0), 0.0)
    assert more.models[""].model().weights == weights
    fewer.restore(more.save(0.0), 0.0)
    assert fewer.models[""].model().weights == weights


def test_the_driver_is_told_when_there_is_something_to_keep() -> None:
    found = learner()
    pod = build(PodOutcome, {"metadata": {"uid": "a", "name": "a", "annotations": {REWARD: "0.5"}}})
    assert not found.observe(build(PodOutcome, {"metadata": {"uid": "a", "name": "a"}}), 0.0)
    placed(found, "a")
    assert found.observe(pod, 1.0)
    found.save(1.0)
    assert not found.observe(pod, 2.0)


def spoilt(text: str, how: str) -> str:
    state = json.loads(text)
    match how:
        case "truncated":
            return text[: len(text) // 2]
        case "changed":
            state["models"][0]["b"][0] += 0.5
        case "not a number":
            return text.replace(str(state["models"][0]["b"][0]), "NaN")
        case "of other features":
            state["features"] = ["one", "memory"]
        case "empty":
            return ""
        case "deeply nested":
            return "[" * 100_000
    return json.dumps(state)


@pytest.mark.parametrize("how", ["truncated", "changed", "not a number", "of other features", "empty", "deeply nested"])
def test_what_is_not_whole_is_not_used(how: str) -> None:
    reports: list[str] = []
    found = learner(report=reports.append)
    found.restore({KEY: spoilt(taught().save(0.0)[KEY], how)}, 0.0)
    assert not found.models
    assert found.outcomes == {"state_refused": 1}
    assert reports[0].startswith("OnlineScore: what was learnt before is not used: the ConfigMap: ")


def test_sums_that_no_examples_have_are_not_used() -> None:
    before = taught()
    for a in (-np.eye(2), np.array([[1.0, 5.0], [0.0, 1.0]]), 1e300 * np.eye(2)):
        before.models[""].a = a
        found = learner()
        found.restore(before.save(0.0), 0.0)
        assert not found.models


def test_the_file_survives_a_restart_and_a_broken_one_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "online.json"
    file = StateFile(str(path))
    before = taught(file=file)
    before.write(100.0)
    file.wait()
    assert [each.name for each in tmp_path.iterdir()] == ["online.json"], "nothing is left beside it"
    after = learner(file=StateFile(str(path)))
    assert after.models[""].model().weights == before.models[""].model().weights
    path.write_bytes(path.read_bytes()[:-20])
    reports: list[str] = []
    assert not learner(file=StateFile(str(path)), report=reports.append).models
    assert "the state file" in reports[0]


def test_a_file_is_not_written_all_the_time_nor_where_nothing_is_new(tmp_path: Path) -> None:
    path = tmp_path / "online.json"
    file = StateFile(str(path))
    found = taught(file=file)
    found.write(100.0)
    file.wait()
    path.unlink()
    found.write(200.0)
    file.wait()
    assert not path.exists(), "nothing is new"
    placed(found, "new", at=200.0)
    found.heard("new", "0.5", False, 200.0)
    found.write(103.0)
    assert not path.exists(), "too early"
    found.write(201.0)
    file.wait()
    assert path.exists()


def test_a_file_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    file = StateFile(str(tmp_path / "missing" / "online.json"))
    found = taught(file=file)
    found.write(100.0)
    file.wait()
    assert found.models[""].rewards == 20
