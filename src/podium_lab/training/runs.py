"""Trains from settings to an ONNX file: cloning, then PPO or DQN, with the best weights of the validation kept.

A checkpoint is an .npz of all arrays, under numbers, with the digest of the settings; that of another training is
refused. Stopped, the same settings go on from the last checkpoint, and come to the same file as if nothing had
happened. The validation plays every episode of its own once to its end in the batched environment, always with the
best-scored node.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zipfile import BadZipFile

import numpy as np

from podium_lab.environments import dynamics
from podium_lab.environments.dynamics import ClusterBatch
from podium_lab.learning.extra import LearningError, needed
from podium_lab.models.heuristics import HEURISTICS
from podium_lab.models.scorer_file import ScorerOrigin, onnx_of
from podium_lab.models.set_scorer import Weights, forward
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.training import dqn, ppo
from podium_lab.training.cloning import clone
from podium_lab.training.event_file import EventFile
from podium_lab.training.learner import TIE, TrainingScene, begin, make_world
from podium_lab.training.settings import TrainingSettings

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


T = TypeVar("T")


def save(path: Path, digest: str, state: Any, beside: dict[str, Any]) -> None:
    """Write arrays of any nested record, and plain values beside them."""
    leaves = jax.tree.leaves(state)
    arrays = {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez(file, about=np.array(json.dumps({"digest": digest, **beside})), **arrays)  # type: ignore[arg-type]
    partial.replace(path)


def restore(path: Path, digest: str, like: T) -> tuple[T, dict[str, Any]] | None:
    """The state of a training with these settings, shaped like the given one; None where there is no file."""
    if not path.exists():
        return None
    leaves, structure = jax.tree.flatten(like)
    try:
        with np.load(path, allow_pickle=False) as found:
            about: dict[str, Any] = json.loads(str(found["about"]))
            arrays = [found[str(number)] for number in range(len(found.files) - 1)]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        raise LearningError(f"{path}: is no checkpoint of podium train; write another --out, or remove it") from None
    fits = len(arrays) == len(leaves) and all(
        mine.shape == np.shape(own) and mine.dtype == own.dtype for mine, own in zip(arrays, leaves, strict=True)
    )
    if about.get("digest") != digest or not fits:
        problem = "belongs to a training with other settings; write another --out, or remove it"
        raise LearningError(f"{path}: {problem}")
    return jax.tree.unflatten(structure, map(jax.numpy.asarray, arrays)), about


SAVED_EVERY = 60.0
"""Seconds between checkpoints; what comes out doesn't depend on it."""
VALIDATED_EVERY = 8
"""Updates between validations."""


class Progress(NamedTuple):
    """How far a training is."""

    update: int
    updates: int
    phase: str
    """cloning, or the algorithm."""
    figures: dict[str, float]
    best: float
    """The mean reward of the best weights in the validation, less that of the heuristic."""


class Trained(NamedTuple):
    """What came out."""

    weights: Weights
    teacher: str
    """The objective whose heuristic did best in the validation, and was learned first."""
    heuristic: float
    """Its mean reward in the validation."""
    best: float
    """That of the weights."""
    agreement: float
    """The share of the weights' decisions that were among that heuristic's best."""

    def values(self) -> dict[str, Any]:
        """How good it is, as files and reports name it."""
        return {
            "validationReward": round(self.best, 6),
            "teacher": self.teacher,
            "heuristicReward": round(self.heuristic, 6),
            "agreement": round(self.agreement, 4),
        }


def train(
    loaded: LoadedScenario,
    settings: TrainingSettings,
    folder: Path,
    now: Callable[[], float],
    progress: Callable[[Progress], None] = lambda _progress: None,
) -> Trained:
    """Train to the end; `now` is the wall time for TensorBoard. Files in `folder`: checkpoint.npz, events.tfevents."""
    if settings.per_update % ppo.PARTS or settings.horizon % dqn.EVERY:
        raise LearningError(f"--clusters × --horizon must be a multiple of {ppo.PARTS}, --horizon of {dqn.EVERY}")
    world = make_world(loaded, settings)
    algorithm = ppo if settings.algorithm == "ppo" else dqn
    optimiser = algorithm.optimiser_of(settings)
    learner = begin(world, settings, optimiser) if algorithm is ppo else dqn.begin_dqn(world, settings, optimiser)
    judge = judge_of(world)
    rewards = {name: float(np.mean(judge(name).rewards)) for name in HEURISTICS}
    world = world._replace(teacher=max(rewards, key=rewards.__getitem__))
    heuristic = rewards[world.teacher]
    best, reached = jax.tree.map(jax.numpy.copy, learner.weights), -np.inf
    checkpoint = folder / "checkpoint.npz"
    found = restore(checkpoint, settings.digest, (learner, best))
    if found is not None:
        (learner, best), about = found
        reached = float(about["reached"])
    cloning = jax.jit(lambda each: clone(world, settings, optimiser, each), donate_argnums=0)
    improving = jax.jit(lambda each: algorithm.improve(world, settings, optimiser, each), donate_argnums=0)
    events = EventFile(folder / "events.tfevents", now())
    saved = time.monotonic()
    update = int(learner.update)

    def keep() -> None:
        save(checkpoint, settings.digest, (learner, best), {"reached": reached})

    try:
        while update < settings.updates:
            phase = "cloning" if update < settings.cloning_updates else settings.algorithm
            learner, figures = (cloning if phase == "cloning" else improving)(learner)
            update = int(learner.update)
            shown = {f"{phase}/{name}": float(each) for name, each in figures.items()}
            if update % VALIDATED_EVERY == 0 or update in (settings.cloning_updates, settings.updates):
                judged = judge(learner.weights, world.teacher)
                mean = float(np.mean(judged.rewards))
                if mean > reached and update >= settings.cloning_updates:
                    best, reached = jax.tree.map(jax.numpy.copy, learner.weights), mean
                shown |= {
                    "validation/reward": mean,
                    "validation/heuristic": heuristic,
                    "validation/agreement": float(judged.agreement),
                }
            events.write(now(), update * settings.per_update, shown)
            progress(Progress(update, settings.updates, phase, shown, reached - heuristic))
            if time.monotonic() - saved > SAVED_EVERY:
                keep()
                saved = time.monotonic()
    except KeyboardInterrupt:
        keep()
        raise
    finally:
        events.close()
    keep()
    return Trained(best, world.teacher, heuristic, reached, float(judge(best, world.teacher).agreement))


def provenance_of(settings: TrainingSettings, command: str) -> dict[str, Any]:
    """Where a training's file comes from."""
    seeds = settings.train_seeds, settings.validation_seeds
    return {
        "seedsSeen": [[each.start, each.stop - 1] for each in seeds],
        "settings": {name: getattr(settings, name) for name in settings.__struct_fields__},
        "command": command,
    }


def file_of(settings: TrainingSettings, trained: Trained, command: str, code_version: str) -> bytes:
    """The ONNX file of a training, with where it comes from."""
    origin = ScorerOrigin(
        objective=settings.objective,
        scenarios=f"{settings.scenario or 'built-in'} sha256:{settings.scenario_hash}",
        seed=str(settings.seed),
        code_version=code_version,
        evaluation=json.dumps({**trained.values(), **provenance_of(settings, command)}),
    )
    return onnx_of({name: np.asarray(each) for name, each in trained.weights.items()}, origin)
