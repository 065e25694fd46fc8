"""Writes a configuration back as KubeSchedulerConfiguration v1, with every default spelt out.

What it writes can be loaded again and gives the same configuration, and kube-scheduler reads it, too. Fields that are
unset because unset means something (`percentageOfNodesToScore`) stay out.
"""

from typing import Any

import msgspec
import yaml

from podium.config.durations import encode_hook
from podium.config.resolved import Profile, SchedulerConfig
from podium.config.types import API_VERSION, KIND, PluginSet
from podium.kube.nulls import without_null_fields


def to_dict(config: SchedulerConfig) -> dict[str, Any]:
    """The configuration as plain values, ready for JSON or YAML."""
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
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": {key: _plugin_set(each) for key, each in profile.plugin_sets.by_key().items()},
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
