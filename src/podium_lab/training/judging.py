"""Judges policies on episodes of the engine: files, model servers and heuristics, on the same pods with the same seeds.

A policy chooses among the nodes that the engine's filters leave. Differences are paired seed by seed.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from podium.load.settings import Tls
from podium_lab.environments.engine_episode import EngineEpisode, Shown
from podium_lab.environments.rewards import REWARDS
from podium_lab.environments.survey import survey
from podium_lab.learning.extra import LearningError
from podium_lab.model_score.channel import ServerAccess
from podium_lab.model_score.open_inference import OpenInferenceModel
from podium_lab.model_score.podium_protocol import PodiumModel
from podium_lab.model_score.question import ModelError, ModelQuestion, ScoringModel
from podium_lab.models.features import ClusterArrays, feature_arrays
from podium_lab.models.heuristics import HEURISTICS
from podium_lab.models.node_arrays import Situation
from podium_lab.models.scorer_file import OnnxScorer, ScorerFileError
from podium_lab.simulator.nodes import scenario_nodes
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.summary import Estimate, estimate

RANDOM = "random"
PATIENCE = 5.0
"""Seconds that a model server has for each answer."""
SERVED = "/v2/models/"
Choice = Callable[[EngineEpisode, Shown], int]


class ScenarioQuestion(NamedTuple):
    """One policy on one episode."""

    loaded: LoadedScenario
    objective: str
    policy: str
    """The name of a heuristic, `random`, the path of an .onnx file, or the URL of a server."""
    seed: int


class ScenarioRow(NamedTuple):
    """What a policy came to on an episode."""

    policy: str
    seed: int
    reward: float
    """The mean reward of the pods that came."""
    placed: int
    unplaced: int


class PairedDifference(NamedTuple):
    """A policy against another, seed by seed."""

    against: str
    difference: Estimate
    smallest: float

    @property
    def beats(self) -> bool:
        return self.difference.mean - self.difference.margin > 0

    @property
    def below(self) -> bool:
        return self.difference.mean + self.difference.margin < 0


def judged(
    loaded: LoadedScenario, objective: str, policies: Sequence[str], seeds: Sequence[int], workers: int
) -> Iterator[ScenarioRow]:
    """The rows of all policies and seeds; raises LearningError."""
    for policy in policies:
        _check(policy, seeds)
    questions = [ScenarioQuestion(loaded, objective, policy, seed) for seed in seeds for policy in policies]
    if workers == 1:
        yield from map(play, questions)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(play, questions)


def play(question: ScenarioQuestion) -> ScenarioRow:
    """One episode to its end."""
    loaded, objective, policy, seed = question
    width = len(scenario_nodes(loaded))
    masked = objective == "latency-aware"
    episode = EngineEpisode(loaded, seed, width, survey(loaded), REWARDS[objective], masked=masked)
    choose, total = _choice(policy, seed), 0.0
    while episode.shown is not None:
        total += episode.step(choose(episode, episode.shown))
    arrived = episode.arrived
    return ScenarioRow(policy, seed, total / max(arrived, 1), episode.placed, arrived - episode.placed)


def paired(rows: Sequence[ScenarioRow], policy: str) -> list[PairedDifference]:
    """A policy against each of the others."""
    own = {row.seed: row.reward for row in rows if row.policy == policy}
    found = []
    for other in dict.fromkeys(row.policy for row in rows if row.policy != policy):
        differences = [own[row.seed] - row.reward for row in rows if row.policy == other and row.seed in own]
        found.append(PairedDifference(other, estimate(differences), min(differences)))
    return found


# Who chooses


def _check(policy: str, seeds: Sequence[int]) -> None:
    if policy in HEURISTICS or policy == RANDOM or _is_url(policy):
        return
    if not Path(policy).exists():
        known = ", ".join((*HEURISTICS, RANDOM))
        raise LearningError(f"{policy}: no such policy; write an .onnx file, the URL of a model, or one of {known}")
    for first, last in _seen(_scorer(policy)):
        met = [seed for seed in seeds if first <= seed <= last]
        if met:
            raise LearningError(f"{policy}: was trained or chosen on seed {met[0]}; judge it by others, such as 42-51")


def _seen(scorer: OnnxScorer) -> list[tuple[int, int]]:
    try:
        found = json.loads(scorer.metadata.get("evaluation", "{}"))
        return [(int(first), int(last)) for first, last in found.get("seedsSeen", [])]
    except (ValueError, TypeError, AttributeError):
        return []  # another tool's words about its evaluation


def _is_url(policy: str) -> bool:
    return policy.startswith(("http://", "https://"))


@lru_cache(maxsize=8)
def _scorer(path: str) -> OnnxScorer:
    try:
        return OnnxScorer(Path(path))
    except ScorerFileError as error:
        raise LearningError(str(error)) from None


@lru_cache(maxsize=8)
def _server(url: str) -> ScoringModel:
    address, served, model = url.partition(SERVED)
    access = ServerAccess(address, Tls(), "")
    if served:
        return OpenInferenceModel(access, model.strip("/"), "", binary=None)
    return PodiumModel(access, "least-allocated", PATIENCE)


def _choice(policy: str, seed: int) -> Choice:
    if policy in HEURISTICS:
        return lambda _episode, shown: _best(shown, HEURISTICS[policy](np, shown.cluster, shown.pod, shown.gpus))
    if policy == RANDOM:
        rng = np.random.default_rng([seed, 5])
        return lambda _episode, shown: int(rng.choice(np.flatnonzero(shown.cluster.mask)))
    if _is_url(policy):
        return lambda episode, shown: _choice_of(_server(policy), episode, shown)
    scorer = _scorer(policy)
    return lambda _episode, shown: _best(shown, scorer.scores(feature_arrays(np, shown.cluster, shown.pod)))


def _best(shown: Shown, scores: Any) -> int:
    return int(np.where(shown.cluster.mask, scores, -np.inf).argmax())


def _choice_of(model: ScoringModel, episode: EngineEpisode, shown: Shown) -> int:
    """The best node by a server, which is asked about the feasible ones."""
    rows = np.flatnonzero(shown.cluster.mask)
    nodes = [episode.node_of(row) for row in rows.tolist()]
    of_nodes = {name: part[rows] for name, part in shown.cluster._asdict().items() if np.ndim(part)}
    cluster: ClusterArrays = shown.cluster._replace(**of_nodes)
    pod = episode.pod
    assert pod is not None
    question = ModelQuestion(
        decision=f"{pod.uid}-{episode.placed}",
        pod=pod,
        names=[node.name for node in nodes],
        nodes=lambda: nodes,
        situation=Situation(cluster, shown.pod, None, stale=False),
        features=lambda: feature_arrays(np, cluster, shown.pod),
    )
    try:
        return int(rows[model.ask(question, time.monotonic() + PATIENCE).numbers.argmax()])
    except ModelError as error:
        raise LearningError(f"{error}") from None
