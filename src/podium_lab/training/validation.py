"""Judges weights on validation episodes in the batched environment, to keep the best ones.

Every episode is played once to its end, always with the best-scored node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from podium_lab.environments import dynamics
from podium_lab.environments.dynamics import ClusterBatch
from podium_lab.learning.extra import needed
from podium_lab.models.heuristics import HEURISTICS
from podium_lab.models.set_scorer import Weights, forward
from podium_lab.training.learner import TIE, TrainingScene

jax = needed("jax", "train")
jnp = jax.numpy


class ValidationFigures(NamedTuple):
    """What came of the validation episodes."""

    rewards: Any
    """float32[episodes]: the mean reward of a pod."""
    agreement: Any
    """The share of decisions that were among the best of the teacher, the heuristic that was learned first."""


def judge_of(world: TrainingScene) -> Callable[..., ValidationFigures]:
    """Plays the validation episodes by weights, compared with a teacher, or by the heuristic of an objective."""
    tables, game = world.validation, world.game
    number, longest = tables.at.shape
    heuristics = [partial(dynamics.heuristic_scores, game, tables, objective=each) for each in HEURISTICS]

    def played(weights: Weights | None, which: Any) -> ValidationFigures:
        clusters = dynamics.begin(game, tables, jnp.arange(number))

        def one(carry: Any, _: Any) -> Any:
            clusters, playing = carry
            heuristic = jax.lax.switch(which, heuristics, clusters)
            action = heuristic.argmax(axis=-1) if weights is None else _best(world, weights, clusters)
            chosen = jnp.take_along_axis(heuristic, action[:, None], axis=-1)[:, 0]
            agrees = (chosen >= heuristic.max(axis=-1) - TIE) & clusters.mask.any(axis=-1)
            fits = clusters.mask.any(axis=-1) & playing
            clusters, outcome = dynamics.step(game, tables, clusters, action)
            reward = jnp.where(playing, outcome.reward, 0.0)
            return (clusters, playing & ~outcome.over), (reward, agrees & playing, fits)

        playing = jnp.ones(number, dtype=jnp.bool_)
        _, (rewards, agrees, fits) = jax.lax.scan(one, (clusters, playing), None, length=longest)
        return ValidationFigures(rewards.sum(axis=0) / tables.pods, agrees.sum() / jnp.maximum(fits.sum(), 1))

    by_weights, by_heuristic = jax.jit(played), jax.jit(lambda which: played(None, which))

    def judge(policy: Weights | str, teacher: str = "") -> ValidationFigures:
        names = list(HEURISTICS)
        if isinstance(policy, str):
            found: ValidationFigures = by_heuristic(names.index(policy))
        else:
            found = by_weights(policy, names.index(teacher or world.teacher))
        return found

    return judge


def _best(world: TrainingScene, weights: Weights, clusters: ClusterBatch) -> Any:
    return forward(jnp, weights, dynamics.observe(world.game, world.validation, clusters))[0].argmax(axis=-1)
