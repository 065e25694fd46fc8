"""Warnings: things a file may say, that kube-scheduler accepts without a word, and that are probably not meant.

The one refusal among them is a negative weight. Depending on where the plugin stands, kube-scheduler either complains
of an overflow or lets it through and then prefers the nodes the plugin likes least; that is never meant.
"""

from podium.config.arguments import PROFILES, plain_arguments
from podium.config.defaults import DEFAULT_PLUGINS, EVERYTHING
from podium.config.expand import MULTI_POINT
from podium.config.field import FieldError, FieldPath
from podium.config.points import Point
from podium.config.problems import Findings, did_you_mean
from podium.config.registry import Registry
from podium.config.types import KubeSchedulerConfiguration, PluginEntry, SchedulerProfile

ABSURD_WEIGHT = 10**6
_WEIGHTED = (MULTI_POINT, Point.SCORE, Point.PLACEMENT_SCORE)
_DEFAULTS = {plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled}


def advise(written: KubeSchedulerConfiguration, registry: Registry, findings: Findings) -> None:
    """Looks through the configuration as it was written, before defaults."""
    for i, extender in enumerate(written.extenders):
        if not extender.url_prefix.startswith(("http://", "https://")):
            at = FieldPath().child("extenders").index(i).child("urlPrefix")
            findings.warn(
                at, f'"{extender.url_prefix}" is no URL, so it cannot be asked', "write http://HOST:PORT/PATH"
            )
    for i, profile in enumerate(written.profiles):
        path = PROFILES.index(i)
        for key, plugins in profile.plugins.by_key().items():
            at = path.child("plugins", key)
            for j, plugin in enumerate(plugins.enabled):
                _weight(plugin, key, at.child("enabled").index(j).child("weight"), registry, findings)
            for j, plugin in enumerate(plugins.disabled):
                _disabled(plugin, at.child("disabled").index(j), registry, findings)
        _idle_arguments(profile, path.child("pluginConfig"), registry, findings)


def _weight(plugin: PluginEntry, key: str, path: FieldPath, registry: Registry, findings: Findings) -> None:
    weight = plugin.weight
    if weight is None:
        return
    scores = plugin.name in registry and not registry[plugin.name].points.isdisjoint(_WEIGHTED)
    if weight < 0:
        findings.invalid(FieldError.invalid(path, weight, "must not be negative"), "write a weight of 1 or more")
    elif weight == 0 and (key not in _WEIGHTED or not scores):
        pass  # kube-scheduler itself writes this for "no weight" when it is asked to write its configuration
    elif key not in _WEIGHTED:
        findings.warn(path, f"a weight has no effect at {key}", "weights count under score and multiPoint")
    elif weight == 0:
        findings.warn(path, "a weight of 0 counts as 1", f"to switch {plugin.name}'s score off, disable it under score")
    elif weight > ABSURD_WEIGHT:
        findings.warn(
            path, f"a weight of {weight} leaves every other score without effect", "weights are usually 1 to 10"
        )


def _disabled(plugin: PluginEntry, path: FieldPath, registry: Registry, findings: Findings) -> None:
    name = plugin.name
    if name != EVERYTHING and name not in registry and name not in _DEFAULTS:
        known = _DEFAULTS | registry.keys()
        findings.warn(path, f'no plugin is called "{name}", so nothing is disabled', did_you_mean(name, known))


def _idle_arguments(profile: SchedulerProfile, path: FieldPath, registry: Registry, findings: Findings) -> None:
    enabled = {plugin.name for each in profile.plugins.by_key().values() for plugin in each.enabled}
    for j, entry in enumerate(profile.plugin_config):
        at = path.index(j)
        if entry.name not in registry:
            if entry.name not in enabled:
                message = f'no plugin is called "{entry.name}", so its arguments are ignored'
                findings.warn(at, message, did_you_mean(entry.name, registry))
        elif registry[entry.name].Args is None and plain_arguments(entry):
            findings.warn(at.child("args"), f"{entry.name} takes no arguments; these are ignored")
