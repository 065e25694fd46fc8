"""Lets a model score the nodes for a pod: a server's, or a file's in this process (ModelScore).

    features → guard → model → checked → 0 to 100          the model answered in time
    features → heuristic of `policy` → 0 to 100            it didn't, or may not be asked

One request for each pod, with all nodes that it fits; where only one does, no model is asked. The decision waits for
the model until `deadline` and no longer, and other pods wait with it, as for an extender. Whatever a server does, it
costs no pod: where no answer comes, or a wrong one, the heuristic decides, first from measured metrics, then from
requests alone, and at the worst all nodes get 50. `model_decisions` counts why.

Real time is measured, not the scheduler's: in a simulation virtual time stands still, and a run in which a deadline
passed says that it can't be repeated (`not_reproducible`).

A model's numbers become whole scores without changing which nodes are best: the best node gets 100, the worst 0, those
between lie on the line between them; where all are equal, all get 50. A node that isn't a best one stays below 100. A
file in this process is read again when it was replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Nodes
from podium.framework import MAX_SCORE, Cycle, DependsOn, Handle, Plugin, Resource, Scores, Status
from podium.framework.plugin_extras import MetricKind, PluginMetric
from podium.framework.protocols import ModelAnswer
from podium.kube import Pod
from podium_lab.model_decisions import ASKED, ModelDecisions
from podium_lab.model_metrics import decision_metrics
from podium_lab.model_score.args import ModelScoreArgs
from podium_lab.model_score.channel import ServerAccess
from podium_lab.model_score.open_inference import OpenInferenceModel
from podium_lab.model_score.outcomes import DecisionFates, Outcomes
from podium_lab.model_score.podium_protocol import PodiumModel
from podium_lab.model_score.question import ModelError, ModelNumbers, ModelQuestion, ScoringModel, checked_numbers
from podium_lab.model_score.suggestions import SuggestionsModel
from podium_lab.models.features import feature_arrays
from podium_lab.models.heuristics import HEURISTICS, least_allocated
from podium_lab.models.node_arrays import NodeArrays, Situation, metric_series
from podium_lab.models.scorer_file import OnnxScorer, ScorerFileError


class FileModel:
    """A scorer file; `warn` is called where something about it couldn't be checked."""

    def __init__(self, path: str, most_outside: float, warn: Callable[[str], None]) -> None:
        self.name = path
        self._path = Path(path)
        self._most_outside = most_outside
        self._warn = warn
        self._stamp: Hashable = None
        self._scorer: OnnxScorer | None = None
        self._problem: ScorerFileError | None = None

    def prepare(self) -> None:
        """Read the file, if it's another one than before."""
        try:
            found = self._path.stat()
            stamp: Hashable = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            stamp = "missing"
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._scorer, self._problem = OnnxScorer(self._path), None
        except ScorerFileError as error:
            self._scorer, self._problem = None, error
            return
        if self._scorer.warning:
            self._warn(self._scorer.warning)

    def close(self) -> None:
        """Nothing is kept open."""

    def ask(self, question: ModelQuestion, _deadline: float) -> ModelNumbers:
        self.prepare()
        if self._scorer is None:
            assert self._problem is not None
            raise ModelError(self._problem.reason, str(self._problem))
        features = question.features()
        outside = self._scorer.share_outside(features)
        if outside > self._most_outside:
            raise ModelError("ood", f"{outside:.0%} of the features are far from those that {self.name} was trained on")
        return ModelNumbers(checked_numbers(self._scorer.scores(features), len(question.names), self.name))


NEUTRAL = 50


def calibrated(raw: NDArray[np.floating]) -> Scores:
    """Scores of finite numbers.

    >>> calibrated(np.array([3.0, 1.0, 2.999])).tolist(), calibrated(np.array([7.0, 7.0])).tolist()
    ([100, 0, 99], [50, 50])
    """
    if not len(raw):
        return np.zeros(0, dtype=np.int64)
    numbers = raw.astype(np.float64) / 2  # halved: the difference of two large numbers may be too large for a number
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return np.full(len(raw), NEUTRAL, dtype=np.int64)
    width = high - low
    shares = (numbers - low) / width if width > 1e-300 else (numbers > low).astype(np.float64)
    scores: Scores = np.rint(MAX_SCORE * shares).astype(np.int64)
    scores[(scores == MAX_SCORE) & (numbers < high)] = MAX_SCORE - 1
    return scores


NAME = "ModelScore"


class ModelScore(Plugin):
    name = NAME
    trusted = True
    Args = ModelScoreArgs
    depends_on = DependsOn(claims=False)

    def __init__(self, args: ModelScoreArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.decisions = ModelDecisions(NAME, args.trial, handle)
        series = metric_series(args.source, args.queries) if args.source.address else {}
        self._arrays = NodeArrays(handle, series, with_gpus=args.policy == "fragmentation")
        self._heuristic = HEURISTICS[args.policy]
        self._model = None if args.mode == "off" else model_of(args, handle)
        tells = args.protocol == "podium" and args.mode != "off"
        self.outcomes = Outcomes(access_of(args)) if tells else None
        self.fates = None if self.outcomes is None else DecisionFates(self.outcomes, handle.clock)
        self._questions = 0
        self.not_reproducible: str | None = None
        """Why a simulation with this plugin can't be repeated."""
        if self._model is not None:
            handle.launch(_prepared(self._model))  # only where pods will be scheduled

    def answer_key(self, pod: Pod) -> Hashable:
        return None  # what a model says of a node depends on the others

    def metrics(self) -> Iterable[PluginMetric]:
        return model_score_metrics(self)

    # Scores

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        if len(nodes) == 1:
            return np.full(1, MAX_SCORE, dtype=np.int64)
        try:
            return self._score(cycle, nodes)
        except Exception as error:  # no score of this plugin is worth a failed cycle
            self.handle.report(f"{NAME}: {type(error).__name__}: {error}; all nodes count the same")
            return np.full(len(nodes), NEUTRAL, dtype=np.int64)

    def _score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        situation = self._arrays.of(cycle, nodes)
        reason = self._source(cycle.pod, situation)
        self.decisions.count(cycle.pod, reason)
        if reason not in ASKED:
            return self._by_heuristic(cycle, situation, reason, 0.0)
        began = time.monotonic()
        model, failed = self._by_model(cycle, nodes, situation, began)
        seconds = time.monotonic() - began
        if model is None:
            self.decisions.recount(cycle.pod, failed)
            return self._by_heuristic(cycle, situation, failed, seconds)
        self.decisions.took(len(nodes), seconds, self.handle.clock.now())
        if reason == "" and not self.decisions.compares:
            self._note(cycle, reason, seconds)
            return model
        heuristic = self._by_heuristic(cycle, situation, reason, seconds)
        self.decisions.compare(cycle, nodes, heuristic, model, seconds)
        return model if reason == "" else heuristic

    def _source(self, pod: Pod, situation: Situation) -> str:
        """Why the heuristic decides about a pod; empty where the model does."""
        if self._model is None:
            return "off"
        reason = self.decisions.guard.reason(self.handle.clock.now())
        if reason is not None:
            return reason
        return "stale_metrics" if situation.stale else self.decisions.by_mode(pod)

    def _by_model(self, cycle: Cycle, nodes: Nodes, situation: Situation, began: float) -> tuple[Scores | None, str]:
        """The model's scores; or None, and why there are none."""
        assert self._model is not None
        names, rows = nodes.names, nodes.rows.tolist()
        question = ModelQuestion(
            decision=self._next_decision(cycle.pod),
            pod=cycle.pod,
            names=names,
            nodes=lambda: [node for row in rows if (node := cycle.cluster.nodes[row]) is not None],
            situation=situation,
            features=lambda: feature_arrays(np, situation.cluster, situation.pod),
        )
        deadline = began + self.args.wait
        try:
            if isinstance(self._model, FileModel) and self.decisions.guard.too_slow(len(names)):
                return None, "timeout"
            answer = self._model.ask(question, deadline)
            if time.monotonic() > deadline and not isinstance(self._model, FileModel):
                raise ModelError("timeout", f"the answer of {self._model.name} took too long to read")
            scores = answer.numbers.astype(np.int64) if answer.final else calibrated(answer.numbers)
        except ModelError as error:
            return None, self._failed(error.reason, error)
        except Exception as error:  # a mistake in the model must not cost a placement: the heuristic decides
            self._model.close()
            return None, self._failed("exception", error)
        if self.fates is not None:
            self.fates.decided(cycle.pod, question.decision)
        return scores, ""

    def _failed(self, reason: str, error: Exception) -> str:
        if reason == "timeout":
            self.not_reproducible = f"{NAME}: a deadline of {self.args.wait:g} s passed, which depends on this machine"
            return self.decisions.late(error)
        return self.decisions.failed(reason, error)

    def _by_heuristic(self, cycle: Cycle, situation: Situation, reason: str, seconds: float) -> Scores:
        self._note(cycle, reason, seconds)
        return heuristic_scores(self._heuristic, situation)

    def _next_decision(self, pod: Pod) -> str:
        self._questions += 1
        return f"{pod.uid}-{self._questions}"

    # Who decided

    def _note(self, cycle: Cycle, reason: str, seconds: float) -> None:
        decided_by = "fallback" if reason else "model"
        cycle.data[NAME] = ModelAnswer(NAME, decided_by, reason, round(1000 * seconds, 3))

    def model_answer(self, cycle: Cycle) -> ModelAnswer | None:
        """Who decided about the pod of a cycle; None where no model was asked."""
        found: ModelAnswer | None = cycle.data.get(NAME)
        return found

    # What becomes of it

    def reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        """Log the decision; nothing is reserved."""
        self.decisions.placed(cycle.pod, node_name)
        return None

    def unreserve(self, cycle: Cycle, node_name: str) -> None:
        if self.fates is not None:
            self.fates.failed(cycle.pod, node_name)

    def observe(self, resource: str, before: Any, after: Any) -> None:
        """Count a pod that is new; let the agent know that one it placed is bound, runs, or is gone."""
        if resource != Resource.POD:
            return
        if before is None and isinstance(after, Pod):
            self._arrays.observe(after)
        if self.fates is not None:
            self.fates.observe(before, after)


async def _prepared(model: ScoringModel) -> None:
    """Connect to the server and check its model, so that the first decision need not wait for that."""
    model.prepare()


def access_of(args: ModelScoreArgs) -> ServerAccess:
    return ServerAccess(args.url, args.tls, args.token_file)


def model_of(args: ModelScoreArgs, handle: Handle) -> ScoringModel:
    """The model that the arguments name; nothing is asked yet."""

    def warn(sentence: str) -> None:
        handle.report(f"{NAME}: {sentence}")

    if not args.url:
        return FileModel(args.model, args.most_outside, warn)
    if args.protocol == "podium":
        return PodiumModel(access_of(args), args.policy, args.wait)
    if args.protocol == "suggestions":
        return SuggestionsModel(args.url)
    return OpenInferenceModel(access_of(args), args.model, args.version, binary=args.binary, warn=warn)


def heuristic_scores(heuristic: Any, situation: Situation) -> Scores:
    """The scores of a heuristic; where it fails, those from requests alone; where that fails, 50 for all."""
    cluster, pod, gpus, _stale = situation
    for attempt in (heuristic, least_allocated):
        with suppress(Exception):  # no score of this plugin is worth a failed cycle
            raw = attempt(np, cluster, pod, gpus)
            if np.isfinite(raw).all():
                return calibrated(raw)
    return np.full(len(cluster.mask), NEUTRAL, dtype=np.int64)


__all__ = ["NAME", "ModelScore", "heuristic_scores"]


if TYPE_CHECKING:
    from podium_lab.model_score.plugin import ModelScore


def model_score_metrics(plugin: ModelScore) -> Iterator[PluginMetric]:
    yield from decision_metrics("podium_model", plugin.name, plugin.decisions)
    outcomes = plugin.outcomes
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_model_outcomes_total",
        "Outcomes of decisions for the agent: sent, or dropped because too many waited.",
        lambda: {
            ("sent",): 0.0 if outcomes is None else outcomes.sent,
            ("dropped",): 0.0 if outcomes is None else outcomes.dropped,
        },
        ("outcome",),
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_model_outcomes_waiting",
        "Outcomes of decisions that are still to be sent to the agent.",
        lambda: 0.0 if outcomes is None else outcomes.waiting,
    )
