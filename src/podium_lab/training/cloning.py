"""Learns the best heuristic first, by what it would do, so that reinforcement learning starts from there.

The loss is the cross-entropy between the scorer's probabilities and the heuristic's best nodes, which share equally
where they tie. The value learns what the heuristic's returns are.
"""

from __future__ import annotations

from typing import Any

from podium_lab.environments import dynamics
from podium_lab.learning.extra import needed
from podium_lab.models.set_scorer import forward
from podium_lab.training.learner import (
    ScorerLearner,
    TrainingScene,
    descend,
    flattened,
    returns_of,
    roll_out,
    scaling_of,
)
from podium_lab.training.settings import TrainingSettings

jax = needed("jax", "train")
jnp = jax.numpy

EPOCHS, PARTS = 4, 8
TRACE = 0.95


def clone(
    world: TrainingScene, settings: TrainingSettings, optimiser: Any, learner: ScorerLearner
) -> tuple[ScorerLearner, Any]:
    """One update: roll out, and learn what the heuristic does in the states that were met."""
    clusters, key, rollout = roll_out(world, settings, learner, taught=True)
    first = learner.update == 0
    scaled = scaling_of(learner.weights, rollout)
    weights = {name: jnp.where(first, scaled[name], each) for name, each in learner.weights.items()}
    last = forward(jnp, weights, dynamics.observe(world.game, world.tables, clusters))[1]
    _, returns = returns_of(settings, rollout, last, TRACE)
    decisions = flattened((rollout, returns))
    key, shuffle = jax.random.split(jax.random.wrap_key_data(key))

    def part(carry: Any, rows: Any) -> Any:
        weights, state = carry
        some, wanted = jax.tree.map(lambda each: each[rows], decisions)

        def loss(trained: Any) -> Any:
            scores, value = forward(jnp, {**weights, **trained}, some.features)
            missed = -(some.target * jnp.where(some.features.mask, jax.nn.log_softmax(scores), 0.0)).sum(axis=-1)
            agrees = jnp.take_along_axis(some.target, scores.argmax(axis=-1)[:, None], axis=-1)[:, 0] > 0
            fits = some.features.mask.any(axis=-1)
            agreement = (agrees & fits).sum() / jnp.maximum(fits.sum(), 1)
            total = missed.mean() + 0.5 * ((value - wanted) ** 2).mean()
            return total, {"cloning_loss": missed.mean(), "agreement": agreement}

        weights, state, figures = descend(optimiser, weights, state, loss)
        return (weights, state), figures

    orders = jax.vmap(lambda k: jax.random.permutation(k, settings.per_update))(jax.random.split(shuffle, EPOCHS))
    rows = orders.reshape(EPOCHS * PARTS, -1)
    (weights, state), figures = jax.lax.scan(part, (weights, learner.optimiser), rows)
    figures = {name: each[-PARTS:].mean() for name, each in figures.items()}
    figures["reward"] = rollout.reward.mean() / (1 - settings.gamma)
    return learner._replace(
        weights=weights,
        optimiser=state,
        clusters=clusters,
        key=jax.random.key_data(key),
        update=learner.update + 1,
    ), figures
