"""Improves a scorer by double deep Q-learning with masks: the score of a node is read as its Q-value.

    target = r + γ·Q_slow(s', argmax over the nodes that fit of Q(s'))    0 after the last pod, or where nothing fits

Acting takes a random node that fits with a probability that falls from FIRST to LAST. A ring remembers the last
decisions of every cluster; the slow weights follow at every SLOW-th update.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from podium_lab.environments import dynamics
from podium_lab.learning.extra import needed
from podium_lab.models.features import Array, Features
from podium_lab.models.set_scorer import Weights, forward
from podium_lab.training.learner import MOST_NORM, ScorerLearner, TrainingScene, begin, descend
from podium_lab.training.settings import TrainingSettings

jax = needed("jax", "train")
optax = needed("optax", "train")
jnp = jax.numpy

FIRST, LAST, FALLS = 0.2, 0.01, 0.5
"""The probability of a random node, and the part of the training in which it falls."""
SOME = 256
"""Decisions of one step of the optimiser."""
EVERY = 8
"""Decisions of each cluster between two of them."""
SLOW = 4


class ReplayRing(NamedTuple):
    """The last decisions, [slots, clusters, …]; slot `filled % slots` is written next."""

    features: Features
    action: Array
    reward: Array
    over: Array
    filled: Array
    """int32: how many decisions of each cluster were written."""
    slow: Weights


def optimiser_of(settings: TrainingSettings) -> Any:
    """Adam with a constant rate."""
    return optax.chain(optax.clip_by_global_norm(MOST_NORM), optax.adam(settings.learning_rate, eps=1e-5))


def begin_dqn(world: TrainingScene, settings: TrainingSettings, optimiser: Any) -> ScorerLearner:
    """A learner that remembers nothing yet."""
    learner = begin(world, settings, optimiser)
    features = dynamics.observe(world.game, world.tables, learner.clusters)
    slots = max(settings.buffer // settings.clusters, 2 * EVERY)

    def ring(part: Array) -> Array:
        return jnp.zeros((slots, *part.shape), dtype=part.dtype)

    one = jnp.zeros(settings.clusters)
    memory = ReplayRing(
        jax.tree.map(ring, features),
        ring(one).astype(jnp.int32),
        ring(one),
        ring(one).astype(jnp.bool_),
        jnp.int32(0),
        jax.tree.map(jnp.copy, learner.weights),
    )
    return learner._replace(memory=memory)


def improve(
    world: TrainingScene, settings: TrainingSettings, optimiser: Any, learner: ScorerLearner
) -> tuple[ScorerLearner, Any]:
    """One update: decide `horizon` pods of each cluster, and learn from remembered ones meanwhile."""
    key, use = jax.random.split(jax.random.wrap_key_data(learner.key))
    done = (learner.update - settings.cloning_updates) / max(settings.updates - settings.cloning_updates, 1)
    random = jnp.clip(FIRST + (LAST - FIRST) * done / FALLS, LAST, FIRST)
    slots = learner.memory.action.shape[0]

    def act(carry: Any, key: Any) -> Any:
        weights, clusters, memory = carry
        features = dynamics.observe(world.game, world.tables, clusters)
        scores, _ = forward(jnp, weights, features)
        explore, which = jax.random.split(key)
        anywhere = jax.random.uniform(explore, (settings.clusters, 1)) < random
        noise = jax.random.uniform(which, scores.shape)
        action = jnp.where(anywhere, jnp.where(features.mask, noise, -1.0), scores).argmax(axis=-1).astype(jnp.int32)
        clusters, outcome = dynamics.step(world.game, world.tables, clusters, action)
        slot = memory.filled % slots
        memory = memory._replace(
            features=jax.tree.map(lambda ring, part: ring.at[slot].set(part), memory.features, features),
            action=memory.action.at[slot].set(action),
            reward=memory.reward.at[slot].set(outcome.reward * (1 - settings.gamma)),
            over=memory.over.at[slot].set(outcome.over),
            filled=memory.filled + 1,
        )
        return (weights, clusters, memory), outcome.reward.mean()

    def round_of(carry: Any, key: Any) -> Any:
        weights, state, clusters, memory = carry
        acting, choosing = jax.random.split(key)
        (weights, clusters, memory), rewards = jax.lax.scan(
            act, (weights, clusters, memory), jax.random.split(acting, EVERY)
        )
        loss = _loss(settings, memory, weights, choosing, slots)
        weights, state, figures = descend(optimiser, weights, state, loss)
        return (weights, state, clusters, memory), {**figures, "reward": rewards.mean()}

    first = learner.update == settings.cloning_updates
    slow = {name: jnp.where(first, learner.weights[name], each) for name, each in learner.memory.slow.items()}
    carry = learner.weights, learner.optimiser, learner.clusters, learner.memory._replace(slow=slow)
    rounds = jax.random.split(use, settings.horizon // EVERY)
    (weights, state, clusters, memory), figures = jax.lax.scan(round_of, carry, rounds)
    follow = learner.update % SLOW == SLOW - 1
    slow = {name: jnp.where(follow, weights[name], each) for name, each in memory.slow.items()}
    figures = {name: each.mean() for name, each in figures.items()}
    return learner._replace(
        weights=weights,
        optimiser=state,
        clusters=clusters,
        key=jax.random.key_data(key),
        update=learner.update + 1,
        memory=memory._replace(slow=slow),
    ), {**figures, "random": random}


def _loss(settings: TrainingSettings, memory: ReplayRing, weights: Weights, key: Array, slots: int) -> Any:
    """The loss on remembered decisions; the one before the next slot to be written has no successor yet."""
    steps, columns = jax.random.split(key)
    known = jnp.minimum(memory.filled, slots) - 1
    oldest = jnp.maximum(memory.filled - slots, 0)
    at = (oldest + jax.random.randint(steps, (SOME,), 0, jnp.maximum(known, 1))) % slots
    column = jax.random.randint(columns, (SOME,), 0, settings.clusters)
    now = jax.tree.map(lambda ring: ring[at, column], memory.features)
    later = jax.tree.map(lambda ring: ring[(at + 1) % slots, column], memory.features)
    action, reward, over = memory.action[at, column], memory.reward[at, column], memory.over[at, column]
    best = forward(jnp, weights, later)[0].argmax(axis=-1)
    slow = jnp.take_along_axis(forward(jnp, memory.slow, later)[0], best[:, None], axis=-1)[:, 0]
    target = reward + settings.gamma * jnp.where(over | ~later.mask.any(axis=-1), 0.0, slow)
    fits = 1.0 * now.mask.any(axis=-1)

    def loss(trained: Any) -> Any:
        scores, _ = forward(jnp, {**weights, **trained}, now)
        chosen = jnp.take_along_axis(scores, action[:, None], axis=-1)[:, 0]
        number = jnp.maximum(fits.sum(), 1)
        missed = (fits * optax.huber_loss(jnp.where(fits > 0, chosen, target), target)).sum() / number
        return missed, {"td_loss": missed, "q": (fits * jnp.where(fits > 0, chosen, 0.0)).sum() / number}

    return loss
