"""Shows on `/metrics` what plugins that learn decide and learn: LearnedScore and OnlineScore, in any process.

podium_learned_decisions_total{profile, source}   podium_learned_overruns_total{profile}
podium_online_decisions_total{profile, source}    podium_online_rewards_total{profile, outcome}
podium_online_reward_sum_total{profile}           podium_online_waiting{profile}
podium_online_error{profile, type}                podium_online_width{profile, type}
podium_online_changes_total{profile, type}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from podium.framework.profile import ProfileRuntime
from podium.plugins.learned import LearnedScore
from podium.plugins.online import OnlineScore
from podium.serving.families import Labels, MetricFamily, ReadFamily, counters, gauges


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
