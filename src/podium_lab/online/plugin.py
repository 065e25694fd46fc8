"""Prefers nodes on which a pod is expected to fare well, by rewards that pods have had (OnlineScore).

    value = expected reward + explore·deviation + neighbours·Σ weight·load     (`bandit`, of `node_features`)
    score = ⌊offset + scale·value + ½⌋, within 0–100

The last term, over the loads whose weight is negative, is what the pod costs those that are there: each of n pods on a
node brings an n-th of its load, and costs each of the n that much times the weight. Without it every pod would go where
it fares best itself, until that is no better than elsewhere, and all are worse off.

Learning goes on beside the decisions: pods that get a node and rewards that come are taken in as events arrive, a small
fixed amount of work each. Decisions read the last model that was published: after a measurement, else at most once a
`refresh`. Its scale is 10 to 90 over all nodes at that time, unless values differ by less than the model knows.

Where the model is away or unsure, the fallback scores by measured load and what recent pods request, where nothing is
measured by requests, and where that fails all nodes get 50. Why it decides is counted: `shadow`, `few` rewards,
`unsure`, `stale` measurements, `drift` (the errors of the model have grown), `timeout`, `nan`, `exception`,
`breaker_open`. The model learns from what the fallback decides, too, so there is no time in which it must try things.

`online_metrics` shows on `/metrics` what it decides and learns.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.cluster import Nodes
from podium.framework import MAX_SCORE, Cycle, DependsOn, Handle, NodePart, Plugin, PluginError, Resource, Scores
from podium.framework.environment import filled
from podium.framework.plugin_extras import MetricKind, PluginMetric
from podium.framework.pod_outcomes import REWARD, ConfigMapName, LearnedState, learn
from podium.kube import Pod
from podium.load.scaling import median
from podium_lab.model_guard import ModelGuard
from podium_lab.online.args import CONFIG_MAP, NAMESPACE, VARIABLES, OnlineScoreArgs
from podium_lab.online.bandit import Floats, RewardModel, weighed
from podium_lab.online.learner import MOST_PLACEMENTS, OnlineLearner, StateFile, UnrewardedPod
from podium_lab.online.node_features import NodeFeatures, PodAmounts, amounts_of

NEUTRAL = 50
LOW, HIGH = 10.0, 90.0
"""Scores of the worst and the best node when a model is published: there is room for nodes that change after it."""
LEAST_SPREAD = 0.05
"""Values that differ by less do not get the whole range of scores."""
MOST_DUE = 16
"""Placements that get their reward from load at one event."""


class PublishedModel(NamedTuple):
    """A model that decisions read: how its values become scores, and what stands of each row until the next one."""

    model: RewardModel
    offset: float
    scale: float
    standing: Floats
    """float64[rows]: the value of each node, but for the features that move with every pod."""
    names: tuple[str, ...]
    """The nodes that the rows were then."""
    moving: tuple[float, ...]
    """The weights of the other features."""
    width: float
    """The deviation of what is expected, in the median over nodes."""
    at: float
    measured: int
    """The generation of the measurements it was scaled with."""


class OnlineScore(Plugin):
    trusted = True
    Args = OnlineScoreArgs
    depends_on = DependsOn(node=NodePart.PODS, claims=False)
    learned_state = LearnedState(ConfigMapName(NAMESPACE, CONFIG_MAP))

    def __init__(self, args: OnlineScoreArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        settings: OnlineScoreArgs = self.args
        if settings.source.kind == "prometheus" and not settings.effective_source.address:
            raise PluginError("set prometheusAddress, or environment variable PROMETHEUS_ADDRESS, to Prometheus' URL")
        self._cluster = handle.cluster
        self._features = NodeFeatures(settings, handle)
        self.guard = ModelGuard(settings.deadline.seconds)
        self.learner = learn(handle, ConfigMapName(settings.namespace, settings.config_map), self._new_learner)
        if self.learner.features != self._features.names:
            where = f"{settings.namespace}/{settings.config_map}"
            raise PluginError(f"profiles with different metrics learn into the ConfigMap {where}; give each its own")
        self.published: dict[str, PublishedModel] = {}
        self._generation = 0
        self._scored: OrderedDict[str, None] = OrderedDict()
        """Pods that were scored and are not bound yet, by uid."""
        self._last = "", ""
        self._node_changes = handle.cluster.node_changes.cursor()
        self._version = 0
        self._standing_of: dict[str, tuple[int, Floats]] = {}
        self._known_of = -1, -1
        self._missing_share = 1.0

    def _new_learner(self) -> OnlineLearner:
        settings: OnlineScoreArgs = self.args
        return OnlineLearner(
            self._features.names,
            forgetting=settings.forgetting,
            within=settings.reward_within.seconds,
            annotated=settings.rewards == "annotation",
            file=StateFile(settings.state_file) if settings.state_file else None,
            report=self.handle.report,
        )

    def interests(self) -> Iterable[Any]:
        return ()

    def metrics(self) -> Iterable[PluginMetric]:
        return online_metrics(self)

    @property
    def unready(self) -> str | None:
        """What keeps it from scoring well: that nothing was measured yet."""
        return None if self._features.generation.count else "nothing has been measured yet"

    # What is heard of

    def observe(self, resource: str, before: Any, after: Any) -> None:
        pod = before if after is None else after
        if resource != Resource.POD or not isinstance(pod, Pod):
            return
        now = self.handle.clock.now()
        try:
            if after is not None and pod.node_name and pod.uid in self._scored:
                del self._scored[pod.uid]
                self._note_placement(pod, now)
            self.learner.heard(pod.uid, pod.metadata.annotations.get(REWARD), pod.status.phase == "Failed", now)
            if self.args.rewards == "load":
                self._reward_by_load(now)
            self._publish(pod, now)
            self.learner.write(now)
        except Exception as error:  # a mistake in the learning must not cost a placement
            self._failed(error)

    def _note_placement(self, pod: Pod, now: float) -> None:
        row = self._cluster.row_of.get(pod.node_name)
        if row is not None:
            facts = self._cluster.facts.of(pod)
            features = self._features.of_placed(pod, row, facts, self.learner.classes)
            self.learner.placed(pod.uid, UnrewardedPod(self._type_of(pod), pod.node_name, features, now))

    def _reward_by_load(self, now: float) -> None:
        """Judge placements by the load of their node a while later, between the highest (0) and the lowest (1)."""
        for uid, placement in self.learner.due(now - self.args.reward_after.seconds, MOST_DUE):
            load, _median, low, high = self._loads()
            row = self._cluster.row_of.get(placement.node_name)
            mine = np.nan if row is None else float(load[row])
            if np.isnan(mine):
                self.learner.reward(uid, np.nan, now)
                self.learner.waiting.pop(uid, None)
            else:
                self.learner.reward(uid, (high - mine) / (high - low) if high > low else 1.0, now)

    def _loads(self) -> tuple[Floats, float, float, float]:
        """float64[rows]: the load of nodes; its median, lowest and highest."""
        load, median = self._features.load()
        present = load[self._cluster.present]
        known = present[~np.isnan(present)]
        return load, median, float(known.min(initial=1.0)), float(known.max(initial=0.0))

    # Publishing

    def _publish(self, pod: Pod, now: float) -> None:
        """Let decisions about such pods see what was learnt and measured, if that is due."""
        kind = self.learner.type_of(self._type_of(pod))
        bandit = self.learner.models.get(kind)
        if bandit is None:
            return
        known = self.published.get(kind)
        measured = self._features.generation.count
        if known is not None and known.measured == measured:
            early = now - known.at < self.args.refresh.seconds
            if early or known.model.rewards == bandit.rewards:
                return
        model = bandit.model()
        present = self._cluster.present
        if not present.any():
            return
        features = self._features.of(Nodes(self._cluster), self._amounts(pod), self.learner.classes)
        deviation = model.deviation(features)
        weights = self._weights(model)
        moving = weights[self._features.moving]
        values = weighed(weights, features) + self.args.explore * deviation
        standing = values - weighed(moving, features[self._features.moving])
        width, spread = median(deviation[present]), values[present]
        low, high = float(spread.min()), float(spread.max())
        if not np.isfinite((low, high, width)).all():
            raise FloatingPointError("an expected reward is not a number")
        scale = (HIGH - LOW) / max(high - low, width, LEAST_SPREAD)
        offset = (HIGH + LOW) / 2 - scale * (low + high) / 2
        standing[~present] = median(standing[present])
        names, factors = tuple(self._cluster.names), tuple(moving.tolist())
        self.published[kind] = PublishedModel(model, offset, scale, standing, names, factors, width, now, measured)
        self._standing_of[kind] = self._nodes_version(), standing
        self._generation += 1

    def _weights(self, model: RewardModel) -> Floats:
        """The weights of features in the value of a node: loads that cost the pod cost its neighbours, too."""
        weights: Floats = np.array(model.weights)
        loads = self._features.loads
        weights[loads] += self.args.neighbours * np.minimum(weights[loads], 0.0)
        return weights

    def _nodes_version(self) -> int:
        """Moves whenever a node does."""
        if not self._node_changes.at_end:
            self._node_changes.read()
            self._version += 1
        return self._version

    def _standing(self, kind: str) -> Floats:
        """The standing part of each row; nodes that have come since are as the others are."""
        version, standing = self._standing_of[kind]
        if version == self._nodes_version():
            return standing
        published, names = self.published[kind], self._cluster.names
        standing = published.standing
        usual = median(standing)
        known = zip(names, published.names, strict=False)
        same = [new == old for new, old in known] + [False] * (len(names) - len(published.names))
        column = np.concatenate([standing, np.full(max(len(names) - len(standing), 0), usual)])[: len(names)]
        found: Floats = np.where(same, column, usual)
        self._standing_of[kind] = self._version, found
        return found

    def _amounts(self, pod: Pod) -> PodAmounts:
        return amounts_of(self._cluster.facts.of(pod))

    def _type_of(self, pod: Pod) -> str:
        return pod.metadata.labels.get(self.args.type_label, "") if self.args.type_label else ""

    # Who decides

    def answer_key(self, pod: Pod) -> Hashable:
        reason = self._source(pod)
        nodes = self._cluster.order.version  # a node that is not measured has the median of all
        return reason, self.guard.generation, self._features.generation.count, self._generation, nodes

    def _source(self, pod: Pod) -> str:
        """Why the fallback decides about a pod; empty where the model does."""
        reason = self._find_source(pod)
        if self._last[0] != pod.uid:
            self.guard.fallbacks[reason] += 1
            self._scored[pod.uid] = None
            if len(self._scored) > MOST_PLACEMENTS:
                self._scored.popitem(last=False)
        self._last = pod.uid, reason
        return reason

    def _find_source(self, pod: Pod) -> str:
        settings: OnlineScoreArgs = self.args
        if settings.mode == "shadow":
            return "shadow"
        published = self.published.get(self.learner.type_of(self._type_of(pod)))
        if published is None or published.model.rewards < settings.few_rewards:
            return "few"
        if self._missing() > settings.most_missing:
            return "stale"
        if published.model.distrusted:
            return "drift"
        if published.width > settings.most_width:
            return "unsure"
        return self.guard.reason(self.handle.clock.now()) or ""

    def _missing(self) -> float:
        generation, rows = self._features.generation.count, self._cluster.columns.rows
        if self._known_of != (generation, rows):
            self._known_of = generation, rows
            self._missing_share = self._features.missing()
        return self._missing_share

    # Scores

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        pod = cycle.pod
        if self._source(pod) == "":
            clock = self.handle.clock
            began = clock.now()
            if self.guard.too_slow(len(nodes)):
                self._recount(pod, "timeout")
            else:
                try:
                    scores = self._model_scores(pod, amounts_of(cycle.facts), nodes)
                except FloatingPointError as error:
                    self._recount(pod, self._failed(error, "nan"))
                except Exception as error:  # a mistake in the model must not cost a placement: the fallback decides
                    self._recount(pod, self._failed(error))
                else:
                    self.guard.took(len(nodes), clock.now() - began, began)
                    return scores
        try:
            return self._fallback(amounts_of(cycle.facts), nodes)
        except Exception as error:  # no score of this plugin is worth a failed cycle
            self._failed(error)
            return np.full(len(nodes), NEUTRAL, dtype=np.int64)

    def _model_scores(self, pod: Pod, amounts: PodAmounts, nodes: Nodes) -> Scores:
        kind = self.learner.type_of(self._type_of(pod))
        published = self.published[kind]
        values = nodes.pick(self._standing(kind))
        for weight, line in zip(published.moving, self._features.moving_of(nodes, amounts), strict=True):
            values = values + weight * line
        raw = published.offset + published.scale * values
        if np.isnan(raw).any():
            raise FloatingPointError("an expected reward is not a number")
        return _points(raw)

    def _fallback(self, amounts: PodAmounts, nodes: Nodes) -> Scores:
        """Least load first, with what recent pods request; where nothing is measured, least requested first."""
        load, median = self._features.load()
        if np.isnan(median):
            return _points(MAX_SCORE * (1 - self._features.requested(nodes, amounts).mean(axis=0)))
        known = nodes.pick(load)
        return _points(MAX_SCORE * (1 - np.where(np.isnan(known), median, known) - self._features.recent(nodes)))

    def _recount(self, pod: Pod, reason: str) -> None:
        """The model was to be asked, and was not able to answer."""
        self.guard.fallbacks[self._last[1]] -= 1
        self.guard.fallbacks[reason] += 1
        self._last = pod.uid, reason

    def _failed(self, error: Exception, reason: str = "exception") -> str:
        self.guard.failed(self.handle.clock.now())
        self.handle.report(f"OnlineScore: {type(error).__name__}: {error}; the fallback decides")
        return reason


def _points(raw: Floats) -> Scores:
    scores: Scores = np.clip(np.floor(raw + 0.5), 0, MAX_SCORE).astype(np.int64)
    return scores


if TYPE_CHECKING:
    from podium_lab.online.plugin import OnlineScore


def online_metrics(plugin: OnlineScore) -> Iterator[PluginMetric]:
    learner = plugin.learner
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_online_decisions_total",
        "Decisions with OnlineScore, by who made them: the model, or the fallback and why.",
        plugin.guard.decisions,
        ("source",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_online_rewards_total",
        "Rewards by what became of them: learnt, or refused and why; none: placements that no reward came for.",
        lambda: {(outcome,): number for outcome, number in list(learner.outcomes.items())},
        ("outcome",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_online_reward_sum_total",
        "The sum of the rewards learnt from.",
        lambda: learner.sum_of_rewards,
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_online_waiting",
        "Placements that wait for their reward.",
        lambda: len(learner.waiting),
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_online_error",
        "Mean absolute error of the expected rewards, of late.",
        lambda: {(kind,): model.recent_error for kind, model in learner.models.items()},
        ("type",),
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_online_width",
        "Deviation of the expected rewards, in the median over nodes.",
        lambda: {(kind,): model.width for kind, model in plugin.published.items()},
        ("type",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_online_changes_total",
        "How often errors grew suddenly, so that most of what was learnt was forgotten.",
        lambda: {(kind,): model.changes for kind, model in learner.models.items()},
        ("type",),
    )
