"""Defines a configuration ready to run, with every plugin's arguments decoded, and writes it back as a file."""

from typing import Any

import msgspec
import yaml

from podium.config.durations import encode_hook
from podium.config.points import Point
from podium.config.types import API_VERSION, KIND, ClientConnection, ExtenderConfig, LeaderElection, Plugins, PluginSet
from podium.kube.json_object import without_null_fields
from podium.kube.versions import NEWEST, Gate, Gates, VersionRules

POD_MAX_IN_UNSCHEDULABLE_PODS_DURATION = 300.0
"""Seconds a pod may be unschedulable before it is tried again, though nothing has woken it."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler name and the plugins that decide for it."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None = None
    plugins: dict[Point, tuple[str, ...]]  # extension point → plugin names in running order
    weights: dict[str, int]  # score plugin → weight
    placement_weights: dict[str, int]  # the same for placementScore
    args: dict[str, msgspec.Struct]  # of each enabled plugin that takes arguments
    plugin_sets: Plugins  # the merged sets the above was made from, as kube-scheduler shows them

    def running_plugins(self, gates: Gates) -> dict[Point, dict[str, int | None]]:
        """The plugins of each extension point that the gates switch on, in running order, with their weights there."""
        idle: set[Point] = set()
        if Gate.TOPOLOGY_AWARE not in gates:
            idle |= {Point.PLACEMENT_GENERATE, Point.PLACEMENT_SCORE}
        if Gate.GENERIC_WORKLOAD not in gates:
            idle.add(Point.POD_GROUP_POST_FILTER)
        weights = {Point.SCORE: self.weights, Point.PLACEMENT_SCORE: self.placement_weights}
        return {
            point: {name: weights.get(point, {}).get(name) for name in names}
            for point, names in self.plugins.items()
            if names and point not in idle
        }


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration. `percentage_of_nodes_to_score` is None when the file does not set it."""

    parallelism: int
    percentage_of_nodes_to_score: int | None
    pod_initial_backoff_seconds: int
    pod_max_backoff_seconds: int
    leader_election: LeaderElection
    client_connection: ClientConnection
    enable_profiling: bool
    enable_contention_profiling: bool
    delay_cache_until_active: bool
    extenders: tuple[ExtenderConfig, ...]  # in the order of the file
    profiles: tuple[Profile, ...]
    rules: VersionRules = NEWEST  # of the Kubernetes minor it decides as, with its feature gates
    pod_max_in_unschedulable_seconds: float = POD_MAX_IN_UNSCHEDULABLE_PODS_DURATION  # a flag sets it, no file

    @property
    def gates(self) -> Gates:
        """The feature gates of kube-scheduler that are on."""
        return self.rules.gates

    @property
    def request_limits(self) -> tuple[float, int]:
        """Requests a second and in a burst, zeros for no limit: kube-scheduler's own defaults are not imposed, so that
        a limit holds only where a file sets another one."""
        connection = self.client_connection
        limits = (connection.qps, connection.burst)
        return (0.0, 0) if limits == (ClientConnection().qps, ClientConnection().burst) else limits

    @property
    def extenders_in_call_order(self) -> tuple[ExtenderConfig, ...]:
        """Extenders that must answer come first, ignorable ones last."""
        return tuple(sorted(self.extenders, key=lambda extender: extender.ignorable))

    def profile(self, scheduler_name: str) -> Profile | None:
        """The profile that decides for pods with this `spec.schedulerName`, or None when none does."""
        return next((each for each in self.profiles if each.scheduler_name == scheduler_name), None)


def to_dict(config: SchedulerConfig) -> dict[str, Any]:
    """The configuration as plain values, ready for JSON or YAML: v1, with every default spelt out.

    What this gives can be loaded again and gives the same configuration, and kube-scheduler reads it, too. Fields that
    are unset because unset means something (`percentageOfNodesToScore`) stay out.
    """
    whole: dict[str, Any] = without_null_fields(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "parallelism": config.parallelism,
            "leaderElection": _plain(config.leader_election),
            "clientConnection": _plain(config.client_connection),
            "enableProfiling": config.enable_profiling,
            "enableContentionProfiling": config.enable_contention_profiling,
            "percentageOfNodesToScore": config.percentage_of_nodes_to_score,
            "podInitialBackoffSeconds": config.pod_initial_backoff_seconds,
            "podMaxBackoffSeconds": config.pod_max_backoff_seconds,
            "profiles": [_profile(profile) for profile in config.profiles],
            "extenders": [_plain(extender) for extender in config.extenders] or None,
            "delayCacheUntilActive": config.delay_cache_until_active,
        }
    )
    return whole


def to_yaml(config: SchedulerConfig) -> str:
    return yaml.safe_dump(to_dict(config), sort_keys=False, allow_unicode=True)


def _profile(profile: Profile) -> dict[str, Any]:
    known = {"multiPoint", *profile.plugins}
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": {key: _plugin_set(each) for key, each in profile.plugin_sets.by_key().items() if key in known},
        "pluginConfig": [
            {"name": name, "args": {"apiVersion": API_VERSION, "kind": f"{name}Args", **_plain(args)}}
            for name, args in profile.args.items()
        ],
    }


def _plugin_set(plugins: PluginSet) -> dict[str, Any] | None:
    lists = {"enabled": _plain(plugins.enabled), "disabled": _plain(plugins.disabled)}
    return {name: entries for name, entries in lists.items() if entries} or None


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=encode_hook)
