"""Holds what all algorithms share: the world they train in, the weights, and rollouts.

Weights are those of `models.set_scorer`; its scaling is taken from the first rollout and then stays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium_lab.environments import dynamics
from podium_lab.environments.dynamics import ClusterBatch, Game
from podium_lab.environments.episode_tables import EpisodeSource, EpisodeTables
from podium_lab.learning.extra import needed
from podium_lab.models.features import Array, Features
from podium_lab.models.schema import F, G, P
from podium_lab.models.set_scorer import LAYERS, Weights, forward, initial_weights
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.training.settings import TrainingSettings

jax = needed("jax", "train")
optax = needed("optax", "train")
jnp = jax.numpy

LEAST_DEVIATION = 0.05
"""Features that hardly vary in training are not blown up."""
TIE = 1e-6
"""Heuristic scores that are closer are equally good."""
EXPLORED = 0.1
"""The share of random actions while the heuristic is learned, so that its mistakes are seen, too."""
MOST_NORM = 0.5
TRAINED = tuple(f"{layer}_{part}" for layer in LAYERS for part in "wb")


class TrainingScene(NamedTuple):
    """The environments of a training."""

    game: Game
    tables: EpisodeTables
    """Those to train on."""
    validation: EpisodeTables
    """Those by which the best weights are chosen."""
    teacher: str
    """The objective whose heuristic is learned first: the best one by the validation."""


class ScorerLearner(NamedTuple):
    """Everything that a training changes: what a checkpoint holds."""

    weights: Weights
    optimiser: Any
    clusters: ClusterBatch
    key: Array
    update: Array
    """int32: how many updates were made."""
    memory: Any
    """What the algorithm keeps beside; () where it's nothing."""


class Rollout(NamedTuple):
    """What happened, [horizon, clusters, …]."""

    features: Features
    action: Array
    log_prob: Array
    value: Array
    reward: Array
    over: Array
    target: Array
    """float32[…, W]: shares of the heuristic's best nodes; they add up to 1."""


def make_world(loaded: LoadedScenario, settings: TrainingSettings) -> TrainingScene:
    """Environments with varied episodes; those for validation are as the scenario says."""
    source = EpisodeSource(loaded)
    game = Game.of(source.timing, settings.objective)
    tables = source.pool(settings.train_seeds, varied=True)
    validation = source.pool(settings.validation_seeds)
    episodes = [jax.tree.map(jnp.asarray, each) for each in (tables, validation)]
    return TrainingScene(game, episodes[0], episodes[1], settings.objective)


def begin(world: TrainingScene, settings: TrainingSettings, optimiser: Any, memory: Any = ()) -> ScorerLearner:
    """Weights drawn by the seed; clusters at different places of their episodes."""
    rng = np.random.default_rng([settings.seed, 1])
    weights = {name: jnp.asarray(each) for name, each in initial_weights(rng, settings.units).items()}
    number, tables = settings.clusters, world.tables
    episodes = jnp.arange(number) % len(tables.pods)
    first = jnp.asarray(rng.random(number)) * tables.pods[episodes]
    clusters = jax.jit(lambda e, i: dynamics.begin(world.game, tables, e, i))(episodes, first.astype(jnp.int32))
    key = jax.random.key_data(jax.random.key(settings.seed))
    trained = {name: weights[name] for name in TRAINED}
    return ScorerLearner(weights, optimiser.init(trained), clusters, key, jnp.int32(0), memory)


def roll_out(
    world: TrainingScene, settings: TrainingSettings, learner: ScorerLearner, *, taught: bool = False
) -> tuple[ClusterBatch, Array, Rollout]:
    """Decide `horizon` pods of each cluster by drawing from the scorer's probabilities, or as the heuristic would."""
    weights = learner.weights

    def one(carry: Any, key: Array) -> Any:
        clusters = carry
        features = dynamics.observe(world.game, world.tables, clusters)
        scores, value = forward(jnp, weights, features)
        target = best_nodes(world, clusters)
        draw, explore = jax.random.split(key)
        logits = scores
        if taught:
            anywhere = jax.random.uniform(explore, (settings.clusters, 1)) < EXPLORED
            logits = jnp.where(anywhere, jnp.where(features.mask, 0.0, -1e8), jnp.log(target + 1e-9))
        action = jax.random.categorical(draw, logits)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(scores), action[:, None], axis=-1)[:, 0]
        clusters, outcome = dynamics.step(world.game, world.tables, clusters, action)
        reward = outcome.reward * (1 - settings.gamma)
        return clusters, Rollout(features, action, log_prob, value, reward, outcome.over, target)

    key, use = jax.random.split(jax.random.wrap_key_data(learner.key))
    clusters, rollout = jax.lax.scan(one, learner.clusters, jax.random.split(use, settings.horizon))
    return clusters, jax.random.key_data(key), rollout


def best_nodes(world: TrainingScene, clusters: ClusterBatch) -> Array:
    """float32[B, W]: the heuristic's best nodes, in equal shares; zeros where nothing fits."""
    scores = dynamics.heuristic_scores(world.game, world.tables, clusters, world.teacher)
    best = (scores >= scores.max(axis=-1, keepdims=True) - TIE) & clusters.mask
    return best / jnp.maximum(best.sum(axis=-1, keepdims=True), 1)


def returns_of(settings: TrainingSettings, rollout: Rollout, last: Array, trace: float) -> tuple[Array, Array]:
    """Advantages by generalised advantage estimation, and the returns that values should have."""

    def back(carry: Any, at: Any) -> Any:
        following, advantage = carry
        reward, value, over = at
        going = settings.gamma * (1.0 - over)
        advantage = reward + going * following - value + going * trace * advantage
        return (value, advantage), advantage

    parts = rollout.reward, rollout.value, rollout.over
    _, advantages = jax.lax.scan(back, (last, jnp.zeros_like(last)), parts, reverse=True)
    return advantages, advantages + rollout.value


def scaling_of(weights: Weights, rollout: Rollout) -> Weights:
    """The weights with the scaling of what was seen."""
    features = rollout.features
    scaled = dict(weights)
    fits = features.mask[..., None]
    count = jnp.maximum(fits.sum(), 1)
    mean = jnp.where(fits, features.nodes, 0.0).sum(axis=(0, 1, 2)) / count
    spread = jnp.sqrt(jnp.where(fits, (features.nodes - mean) ** 2, 0.0).sum(axis=(0, 1, 2)) / count)
    scaled |= {"node_mean": mean, "node_deviation": jnp.maximum(spread, LEAST_DEVIATION)}
    for name, part, width in (("pod", features.pod, P), ("global", features.globals, G)):
        rows = part.reshape(-1, width)
        scaled[f"{name}_mean"] = rows.mean(axis=0)
        scaled[f"{name}_deviation"] = jnp.maximum(rows.std(axis=0), LEAST_DEVIATION)
    assert mean.shape == (F,)
    return scaled


def trained_part(weights: Weights) -> dict[str, Array]:
    return {name: weights[name] for name in TRAINED}


def descend(optimiser: Any, weights: Weights, state: Any, loss: Any) -> tuple[Weights, Any, Any]:
    """One step of the optimiser down the loss, a function of the trained weights."""
    (_, figures), slopes = jax.value_and_grad(loss, has_aux=True)(trained_part(weights))
    changes, state = optimiser.update(slopes, state, trained_part(weights))
    return {**weights, **optax.apply_updates(trained_part(weights), changes)}, state, figures


def flattened(rollout: Any) -> Any:
    """[horizon, clusters, …] → [decisions, …]."""
    return jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:]), rollout)
