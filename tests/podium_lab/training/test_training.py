"""Training by PPO and DQN: it learns, it goes on exactly where it was, and its file says where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

import jax
import jax.numpy as jnp

from podium_lab.environments import dynamics
from podium_lab.models.scorer_file import OnnxScorer
from podium_lab.models.set_scorer import forward
from podium_lab.simulator.reading import load_scenario
from podium_lab.training import runs
from podium_lab.training.learner import begin as begin_learner
from podium_lab.training.learner import make_world, roll_out
from podium_lab.training.ppo import optimiser_of
from podium_lab.training.runs import judge_of
from podium_lab.training.settings import TrainingSettings
from tests.podium.cli.command import podium
from tests.podium_lab.environments.random_scenarios import random_scenario

pytestmark = pytest.mark.long  # compiling takes most of the time

MIXED = """
nodes:
- {count: 3, name: "small-{index}", allocatable: {cpu: 8, memory: 16Gi}}
- {count: 3, name: "large-{index}", allocatable: {cpu: 16, memory: 64Gi}}
workload:
  generate:
    count: 100
    interval: {exponential: 10s}
    lifetime: {exponential: 8m}
    shapes: [{requests: {cpu: {uniform: ["0.2", "2"]}, memory: {uniform: [256Mi, 3Gi]}}, labels: {app: web}}]
unschedulable: drop
"""


def settings(**given: Any) -> TrainingSettings:
    small = {
        "algorithm": "ppo",
        "objective": "least-allocated",
        "scenario": "",
        "scenario_hash": "",
        "steps": 3 * 128,
        "cloning": 2 * 128,
        "clusters": 8,
        "horizon": 16,
        "episodes": 8,
        "validation": 4,
        "units": 16,
        "buffer": 512,
    }
    return TrainingSettings(**{**small, **given})


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_training_that_was_stopped_goes_on_exactly_where_it_was(algorithm: str, tmp_path: Path) -> None:
    chosen = settings(algorithm=algorithm)
    whole = runs.train(random_scenario(3), chosen, _folder(tmp_path / "whole"), lambda: 0.0)

    def stop(progress: runs.Progress) -> None:
        if progress.update == 3:
            raise KeyboardInterrupt

    parts = _folder(tmp_path / "parts")
    with pytest.raises(KeyboardInterrupt):
        runs.train(random_scenario(3), chosen, parts, lambda: 0.0, stop)
    resumed = runs.train(random_scenario(3), chosen, parts, lambda: 0.0)
    for name, each in whole.weights.items():
        assert np.array_equal(np.asarray(each), np.asarray(resumed.weights[name])), name
    files = [runs.file_of(chosen, each, "command", "version") for each in (whole, resumed)]
    assert files[0] == files[1]


def test_the_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    folder = str(tmp_path)
    small = ("--clusters", "4", "--horizon", "8", "--episodes", "4", "--validation", "2", "--cloning", "32")
    scenario = tmp_path / "mixed.yaml"
    scenario.write_text(MIXED)
    first = ("train", "--algorithm", "ppo", "--scenario", str(scenario), "--out", folder, *small)
    found = podium(*first, "--steps", "32", "--width", "8")
    assert (found.code, found.out) == (0, f"{tmp_path}/ppo-least-allocated-1.onnx\n")
    (result,) = json.loads(podium(*first, "--steps", "32", "--width", "8", "-o", "json").out)
    again = podium(*first, "--steps", "64", "--width", "8")
    assert again.code == 2
    assert "belongs to a training with other settings; write another --out, or remove it" in again.err
    metadata = OnnxScorer(tmp_path / "ppo-least-allocated-1.onnx").metadata
    evaluation = json.loads(metadata["evaluation"])
    assert metadata["objective"] == "least-allocated"
    assert result["file"] == f"{tmp_path}/ppo-least-allocated-1.onnx"
    assert {**result["values"], **result["provenance"]} == {**evaluation, "codeVersion": metadata["codeVersion"]}
    assert evaluation["seedsSeen"] == [[1010000, 1010003], [900000, 900001]]
    assert evaluation["command"].startswith("podium train --algorithm ppo --objective least-allocated --scenario")
    judged = podium("evaluate", f"{tmp_path}/ppo-least-allocated-1.onnx", "--objective", "least-allocated",
                    "--scenario", str(scenario), "--seeds", "42-43", "--against", "least-allocated")  # fmt: skip
    assert judged.code == 0


def test_cloning_comes_to_the_heuristics_decisions_and_random_weights_do_not() -> None:
    """The sanity gate: on dense rewards the heuristic is the optimum."""
    chosen = settings(
        cloning=150 * 512, steps=512, clusters=32, horizon=16, episodes=64, validation=16, units=32, learning_rate=1e-3
    )
    loaded = load_scenario(MIXED, "mixed.yaml")
    world = make_world(loaded, chosen)
    judge = judge_of(world)
    learner = begin_learner(world, chosen, optimiser_of(chosen))
    before = float(judge(learner.weights).agreement)
    from podium_lab.training.cloning import clone

    optimiser = optimiser_of(chosen)
    step = jax.jit(lambda each: clone(world, chosen, optimiser, each))
    for _ in range(chosen.cloning_updates):
        learner, _ = step(learner)
    assert before < 0.6
    assert float(judge(learner.weights).agreement) >= 0.9


def test_actions_are_never_masked_ones_and_probabilities_are_those_that_acted() -> None:
    chosen = settings()
    world = make_world(random_scenario(3), chosen)
    learner = begin_learner(world, chosen, optimiser_of(chosen))
    _, _, rollout = jax.jit(lambda each: roll_out(world, chosen, each))(learner)
    mask = np.asarray(rollout.features.mask)
    chosen_fits = np.take_along_axis(mask, np.asarray(rollout.action)[..., None], axis=-1)[..., 0]
    assert (chosen_fits | ~mask.any(axis=-1)).all()
    scores, _ = forward(jnp, learner.weights, rollout.features)
    probabilities = np.asarray(jax.nn.softmax(scores))
    acted = np.take_along_axis(probabilities, np.asarray(rollout.action)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(np.exp(np.asarray(rollout.log_prob)), acted, rtol=1e-4)


def test_a_file_scores_as_the_training_did(tmp_path: Path) -> None:
    chosen = settings()
    trained = runs.train(random_scenario(3), chosen, _folder(tmp_path), lambda: 0.0)
    path = tmp_path / "scorer.onnx"
    path.write_bytes(runs.file_of(chosen, trained, "command", "version"))
    scorer = OnnxScorer(path)
    world = make_world(random_scenario(3), chosen)
    clusters = dynamics.begin(world.game, world.tables, jnp.arange(8))
    features = jax.tree.map(np.asarray, dynamics.observe(world.game, world.tables, clusters))
    expected = np.asarray(forward(jnp, trained.weights, features)[0])
    for i in range(8):
        found = scorer.scores(jax.tree.map(lambda part, i=i: part[i], features))
        np.testing.assert_allclose(found, expected[i], atol=1e-4)
        assert found.argmax() == expected[i].argmax()


def _folder(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path
