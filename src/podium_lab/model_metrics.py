"""Shows on `/metrics` what plugins that learn decide and learn: LearnedScore and OnlineScore, in any process.

podium_learned_decisions_total{profile, source}   podium_learned_overruns_total{profile}
podium_learned_mode{profile, mode}                podium_learned_demotions_total{profile}
podium_learned_comparisons_total{profile, outcome}
podium_learned_rank_correlation_sum_total{profile}
podium_learned_seconds{profile, quantile}         podium_learned_bad_ratio{profile}
podium_learned_drift{profile}                     podium_learned_unknown_models{profile}
podium_online_decisions_total{profile, source}    podium_online_rewards_total{profile, outcome}
podium_online_reward_sum_total{profile}           podium_online_waiting{profile}
podium_online_error{profile, type}                podium_online_width{profile, type}
podium_online_changes_total{profile, type}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from podium.framework.profile import ProfileRuntime
from podium.serving.families import Labels, MetricFamily, ReadFamily, counters, gauges
from podium_lab.learned import LearnedScore
from podium_lab.online import OnlineScore

QUANTILES = (0.5, 0.99)


def model_families(profiles: Mapping[str, ProfileRuntime]) -> list[MetricFamily]:
    """What there is to show; nothing where no profile learns."""
    plugins = [(name, plugin) for name, runtime in profiles.items() for plugin in runtime.plugins.values()]
    learned = [(name, plugin) for name, plugin in plugins if isinstance(plugin, LearnedScore)]
    online = [(name, plugin) for name, plugin in plugins if isinstance(plugin, OnlineScore)]
    return [*(_of_learned(learned) if learned else ()), *(_of_online(online) if online else ())]


def _of_learned(plugins: list[tuple[str, LearnedScore]]) -> Iterator[MetricFamily]:
    yield ReadFamily(
        counters,
        "podium_learned_decisions_total",
        "Decisions with LearnedScore, by who made them: the model, or the fallback and why.",
        lambda: {(name, source or "model"): number for name, each in plugins for source, number in _sources(each)},
        ("profile", "source"),
    )
    yield ReadFamily(
        counters,
        "podium_learned_overruns_total",
        "Answers of the model that took longer than its deadline.",
        lambda: {(name,): each.guard.overruns for name, each in plugins},
        ("profile",),
    )

    yield ReadFamily(
        gauges,
        "podium_learned_mode",
        "1 for the mode that LearnedScore works in: off, shadow, canary, active, or demoted.",
        lambda: {(name, each.mode): 1.0 for name, each in plugins},
        ("profile", "mode"),
    )
    yield ReadFamily(
        counters,
        "podium_learned_demotions_total",
        "How often the model was found to do badly and no longer decided.",
        lambda: {(name,): each.health.demotions for name, each in plugins},
        ("profile",),
    )
    yield ReadFamily(
        counters,
        "podium_learned_comparisons_total",
        "Decisions for which model and fallback were compared: a best node of both is the same, or differs.",
        lambda: {(name, outcome): n for name, each in plugins for outcome, n in list(each.health.comparisons.items())},
        ("profile", "outcome"),
    )
    yield ReadFamily(
        counters,
        "podium_learned_rank_correlation_sum_total",
        "The sum of the rank correlations of all comparisons.",
        lambda: {(name,): each.health.correlations for name, each in plugins},
        ("profile",),
    )
    yield ReadFamily(
        gauges,
        "podium_learned_seconds",
        "Seconds that the last 10,000 answers of the model took, at most, by quantile.",
        lambda: {
            (name, str(quantile)): seconds
            for name, each in plugins
            for quantile, seconds in zip(QUANTILES, each.health.seconds(*QUANTILES), strict=False)
        },
        ("profile", "quantile"),
    )
    yield ReadFamily(
        gauges,
        "podium_learned_bad_ratio",
        "The share of the last 1,000 answers that were late or failed.",
        lambda: {(name,): each.health.bad_share for name, each in plugins},
        ("profile",),
    )
    yield ReadFamily(
        gauges,
        "podium_learned_drift",
        "The distance, 0 to 1, of the pods seen from those of the training.",
        lambda: {(name,): each.drift for name, each in plugins},
        ("profile",),
    )
    yield ReadFamily(
        gauges,
        "podium_learned_unknown_models",
        "GPU models of nodes that the training had not.",
        lambda: {(name,): each.unknown_models for name, each in plugins},
        ("profile",),
    )


def _of_online(plugins: list[tuple[str, OnlineScore]]) -> Iterator[MetricFamily]:
    yield ReadFamily(
        counters,
        "podium_online_decisions_total",
        "Decisions with OnlineScore, by who made them: the model, or the fallback and why.",
        lambda: {(name, source or "model"): number for name, each in plugins for source, number in _sources(each)},
        ("profile", "source"),
    )
    yield ReadFamily(
        counters,
        "podium_online_rewards_total",
        "Rewards by what became of them: learnt, or refused and why; none: placements that no reward came for.",
        lambda: {
            (name, outcome): number for name, each in plugins for outcome, number in list(each.learner.outcomes.items())
        },
        ("profile", "outcome"),
    )
    yield ReadFamily(
        counters,
        "podium_online_reward_sum_total",
        "The sum of the rewards learnt from.",
        lambda: {(name,): each.learner.sum_of_rewards for name, each in plugins},
        ("profile",),
    )
    yield ReadFamily(
        gauges,
        "podium_online_waiting",
        "Placements that wait for their reward.",
        lambda: {(name,): len(each.learner.waiting) for name, each in plugins},
        ("profile",),
    )
    yield ReadFamily(
        gauges,
        "podium_online_error",
        "Mean absolute error of the expected rewards, of late.",
        lambda: _by_type(plugins, lambda each: {kind: one.recent_error for kind, one in each.learner.models.items()}),
        ("profile", "type"),
    )
    yield ReadFamily(
        gauges,
        "podium_online_width",
        "Deviation of the expected rewards, in the median over nodes.",
        lambda: _by_type(plugins, lambda each: {kind: one.width for kind, one in each.published.items()}),
        ("profile", "type"),
    )
    yield ReadFamily(
        counters,
        "podium_online_changes_total",
        "How often errors grew suddenly, so that most of what was learnt was forgotten.",
        lambda: _by_type(plugins, lambda each: {kind: one.changes for kind, one in each.learner.models.items()}),
        ("profile", "type"),
    )


def _by_type(
    plugins: list[tuple[str, OnlineScore]], read: Callable[[OnlineScore], Mapping[str, float]]
) -> dict[Labels, float]:
    """A number for each profile and type of pods."""
    return {(profile, kind): number for profile, plugin in plugins for kind, number in read(plugin).items()}


def _sources(plugin: LearnedScore | OnlineScore) -> list[tuple[str, int]]:
    return list(plugin.guard.fallbacks.items())
