"""Improves a scorer by proximal policy optimisation with masked probabilities.

    L = −E[min(ratio·A, clip(ratio, 0.8, 1.2)·A)] + ½·E[(V − R)²] − entropy·H

Decisions without a choice (nothing fits, or one node) are left out of the loss. Learning rate and entropy fall to 0.
"""

from __future__ import annotations

from typing import Any

from podium_lab.environments import dynamics
from podium_lab.learning.extra import needed
from podium_lab.models.set_scorer import forward
from podium_lab.training.learner import (
    MOST_NORM,
    ScorerLearner,
    TrainingScene,
    descend,
    flattened,
    returns_of,
    roll_out,
)
from podium_lab.training.settings import TrainingSettings

jax = needed("jax", "train")
optax = needed("optax", "train")
jnp = jax.numpy

EPOCHS, PARTS = 4, 8
CLIP, TRACE, ENTROPY = 0.2, 0.95, 0.01


def optimiser_of(settings: TrainingSettings) -> Any:
    """Adam with a rate that falls while the heuristic is learned, and again, to 0, while it is improved upon."""
    each = EPOCHS * PARTS
    learned = max(settings.updates - settings.cloning_updates, 1)
    rate = optax.join_schedules(
        [
            optax.linear_schedule(1e-3, 1e-4, settings.cloning_updates * each),
            optax.linear_schedule(settings.learning_rate, 0.0, learned * each),
        ],
        [settings.cloning_updates * each],
    )
    return optax.chain(optax.clip_by_global_norm(MOST_NORM), optax.adam(rate, eps=1e-5))


def improve(
    world: TrainingScene, settings: TrainingSettings, optimiser: Any, learner: ScorerLearner
) -> tuple[ScorerLearner, Any]:
    """One update: roll out, and go over what happened a few times."""
    clusters, key, rollout = roll_out(world, settings, learner)
    _, last = forward(jnp, learner.weights, dynamics.observe(world.game, world.tables, clusters))
    advantages, returns = returns_of(settings, rollout, last, TRACE)
    decisions = flattened((rollout, advantages, returns))
    key, shuffle = jax.random.split(jax.random.wrap_key_data(key))
    done = (learner.update - settings.cloning_updates) / max(settings.updates - settings.cloning_updates, 1)
    entropy_weight = ENTROPY * (1.0 - done)

    def part(carry: Any, rows: Any) -> Any:
        weights, state = carry
        some, advantage, wanted = jax.tree.map(lambda each: each[rows], decisions)
        choice = 1.0 * (some.features.mask.sum(axis=-1) > 1)
        number = jnp.maximum(choice.sum(), 1.0)
        centred = advantage - (choice * advantage).sum() / number
        spread = jnp.sqrt((choice * centred**2).sum() / number)
        advantage = centred / (spread + 1e-8)

        def loss(trained: Any) -> Any:
            scores, value = forward(jnp, {**weights, **trained}, some.features)
            log_probs = jax.nn.log_softmax(scores)
            log_prob = jnp.take_along_axis(log_probs, some.action[:, None], axis=-1)[:, 0]
            ratio = jnp.exp(jnp.where(choice > 0, log_prob - some.log_prob, 0.0))
            clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP)
            gain = (choice * jnp.minimum(ratio * advantage, clipped * advantage)).sum() / number
            spread_out = -jnp.where(some.features.mask, jnp.exp(log_probs) * log_probs, 0.0).sum(axis=-1)
            entropy = (choice * spread_out).sum() / number
            missed = ((value - wanted) ** 2).mean()
            figures = {
                "policy_loss": -gain,
                "value_loss": missed,
                "entropy": entropy,
                "clipped": (choice * (jnp.abs(ratio - 1) > CLIP)).sum() / number,
            }
            return -gain + 0.5 * missed - entropy_weight * entropy, figures

        weights, state, figures = descend(optimiser, weights, state, loss)
        return (weights, state), figures

    orders = jax.vmap(lambda k: jax.random.permutation(k, settings.per_update))(jax.random.split(shuffle, EPOCHS))
    rows = orders.reshape(EPOCHS * PARTS, -1)
    (weights, state), figures = jax.lax.scan(part, (learner.weights, learner.optimiser), rows)
    figures = {name: each.mean() for name, each in figures.items()}
    figures["reward"] = rollout.reward.mean() / (1 - settings.gamma)
    return learner._replace(
        weights=weights,
        optimiser=state,
        clusters=clusters,
        key=jax.random.key_data(key),
        update=learner.update + 1,
    ), figures
