"""Builds what the engine runs from a defaulted configuration: extension points filled, weights and arguments settled.

This is where kube-scheduler would construct extenders, plugins and profiles, and where it notices what the rules
about single values cannot show: a plugin that does not exist, two queue sorts, no binder. It stops at the first; here
they are all reported, but a profile whose plugin sets did not decode is left alone rather than blamed for the gap.

Also decodes `pluginConfig`: each entry's arguments into the struct of its plugin.

As in kube-scheduler, arguments are decoded and checked even when the plugin is not enabled, `apiVersion` and `kind`
inside them may be left out but must be right when given, and arguments of an unknown plugin are let pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.config.expand import MULTI_POINT, Refusal, expand, score_weights
from podium.config.field import FieldPath, quoted
from podium.config.points import Point
from podium.config.problems import STRICT, Findings, Stage, did_you_mean
from podium.config.registry import ChecksItself, DiffersByVersion, Registry
from podium.config.resolved import Profile, SchedulerConfig
from podium.config.secrets import without_secrets
from podium.config.strict import decode
from podium.config.types import API_VERSION, GROUP, KubeSchedulerConfiguration, PluginConfig, Plugins, SchedulerProfile
from podium.config.validate import FIT, REMOVED_HINT, REMOVED_PLUGINS, DecodedArgs
from podium.kube.versions import VersionRules

PROFILES = FieldPath(("profiles",))


def build(
    config: KubeSchedulerConfiguration,
    written: KubeSchedulerConfiguration,
    args: DecodedArgs,
    registry: Registry,
    findings: Findings,
    rules: VersionRules,
) -> SchedulerConfig:
    """`written` is the configuration before defaulting: messages point into the file, not into the defaults."""
    builder = _Builder(registry, findings, _ignored_resources(config), rules)
    _check_extenders(config, builder.ignored, findings)
    profiles: list[Profile] = []
    for i, profile in enumerate(config.profiles):
        written_plugins = written.profiles[i].plugins if i < len(written.profiles) else Plugins()
        given = {entry.name: args.get((i, j)) for j, entry in enumerate(profile.plugin_config)}
        profiles.append(builder.profile(profile, PROFILES.index(i), written_plugins, given))
    _check_one_queue(config, profiles, findings)
    return SchedulerConfig(
        parallelism=config.parallelism,
        percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=config.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=config.pod_max_backoff_seconds,
        leader_election=config.leader_election,
        client_connection=config.client_connection,
        enable_profiling=config.enable_profiling,
        enable_contention_profiling=bool(config.enable_contention_profiling),
        delay_cache_until_active=config.delay_cache_until_active,
        extenders=config.extenders,
        profiles=tuple(profiles),
    )


@dataclass
class _Builder:
    registry: Registry
    findings: Findings
    ignored: list[str]  # resources that an extender manages and NodeResourcesFit must not look at
    rules: VersionRules

    def profile(
        self,
        profile: SchedulerProfile,
        path: FieldPath,
        written_plugins: Plugins,
        given: Mapping[str, msgspec.Struct | None],
    ) -> Profile:
        name = profile.scheduler_name or ""
        creating = f"initializing profiles: creating profile for scheduler name {name}: "
        legible = not self.findings.found_under(path.child("plugins"), up_to=Stage.STRICT)
        args = self._arguments(profile, path, given, creating)
        expansion = expand(profile.plugins, self.registry)
        if not self.rules.pod_group_post_filter_point:
            del expansion.plugins[Point.POD_GROUP_POST_FILTER]
        if legible:
            for refusal in expansion.refusals:
                self._refuse(refusal, path.child("plugins"), written_plugins, creating)
            if not expansion.refusals:
                self._check_counts(name, expansion.plugins, path, creating)
        return Profile(
            scheduler_name=name,
            percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
            plugins=expansion.plugins,
            weights=self._weights(Point.SCORE, profile.plugins, expansion.plugins, path, creating),
            placement_weights=self._weights(Point.PLACEMENT_SCORE, profile.plugins, expansion.plugins, path, creating),
            args=args,
            plugin_sets=profile.plugins,
        )

    def _arguments(
        self, profile: SchedulerProfile, path: FieldPath, given: Mapping[str, msgspec.Struct | None], creating: str
    ) -> dict[str, msgspec.Struct]:
        """The arguments of each enabled plugin: those of the file, else the defaults of its struct."""
        enabled = {plugin.name for each in profile.plugins.by_key().values() for plugin in each.enabled}
        position = {entry.name: j for j, entry in enumerate(profile.plugin_config)}
        settled: dict[str, msgspec.Struct] = {}
        for name in sorted(enabled & self.registry.keys()):
            args_type = self.registry[name].Args
            if args_type is None or (name in given and given[name] is None):
                continue
            at = path.child("pluginConfig").index(position[name]).child("args") if name in position else path
            args = given.get(name)
            if args is None or (name == FIT and self.ignored):
                raw = plain_arguments(profile.plugin_config[position[name]]) if name in position else {}
                if name == FIT and self.ignored:
                    raw["ignoredResources"] = self.ignored
                args, mistakes = decode(raw, args_type)
                for mistake in mistakes:
                    self.findings.uninitializable(at, name, mistake.message, creating)
            if name == FIT and isinstance(args, ChecksItself):
                for error in args.validate(FieldPath()):
                    field = FieldPath((*at.steps, *error.path.steps))
                    self.findings.uninitializable(field, name, str(error), creating)
            if args is not None:
                settled[name] = args.with_defaults_of(self.rules) if isinstance(args, DiffersByVersion) else args
        return settled

    def _refuse(self, refusal: Refusal, path: FieldPath, written_plugins: Plugins, creating: str) -> None:
        position: int | None = refusal.position
        if refusal.key == MULTI_POINT:  # defaults were merged in; look the entry up in the file
            named = [plugin.name for plugin in written_plugins.multi_point.enabled]
            position = max((k for k, name in enumerate(named) if name == refusal.name), default=None)
        at = path if position is None else path.child(refusal.key, "enabled").index(position)
        self.findings.unbuildable(at, refusal.message, self._advice(refusal, in_file=position is not None), creating)

    def _advice(self, refusal: Refusal, in_file: bool) -> str:
        if refusal.name in REMOVED_PLUGINS:
            return REMOVED_HINT
        if refusal.name in self.registry:
            points = ", ".join(sorted(self.registry[refusal.name].points))
            return f"it runs at {points}" if "does not extend" in refusal.message else "name it once"
        if not in_file:
            return "it is one of the default plugins; disable it under plugins.multiPoint, or load it with --plugin"
        if not refusal.name:
            return "give the entry a name"
        return did_you_mean(refusal.name, self.registry) or "load it with --plugin module:Class"

    def _check_counts(
        self, name: str, plugins: Mapping[Point, tuple[str, ...]], path: FieldPath, creating: str
    ) -> None:
        def refuse(point: Point, message: str, hint: str) -> None:
            self.findings.unbuildable(path.child("plugins", point), message, hint, creating)

        for_profile = f"for profile with scheduler name {quoted(name)}"
        sorters = plugins[Point.QUEUE_SORT]
        if len(sorters) != 1:
            hint = 'disable "*" under queueSort and enable one plugin there' if sorters else "enable PrioritySort"
            refuse(Point.QUEUE_SORT, f"only one queue sort plugin required {for_profile}, but got {len(sorters)}", hint)
        if not plugins[Point.BIND]:
            refuse(Point.BIND, f"at least one bind plugin is needed {for_profile}", "enable DefaultBinder")
        generators = plugins[Point.PLACEMENT_GENERATE]
        if len(generators) > 1:
            message = f"at most one placement generate plugin is allowed {for_profile}"
            refuse(
                Point.PLACEMENT_GENERATE,
                message,
                f"disable all but one of {', '.join(generators)}",
            )

    def _weights(
        self, point: Point, sets: Plugins, plugins: Mapping[Point, tuple[str, ...]], path: FieldPath, creating: str
    ) -> dict[str, int]:
        try:
            weights = score_weights(point, sets, self.registry)
        except OverflowError as error:
            prefix = creating + ("score plugins: " if point is Point.SCORE else "placement score plugins: ")
            self.findings.unbuildable(path.child("plugins", point), str(error), "use smaller weights", prefix)
            return {}
        return {name: weights[name] for name in plugins[point] if name in weights}


def _ignored_resources(config: KubeSchedulerConfiguration) -> list[str]:
    managed = (resource for extender in config.extenders for resource in extender.managed_resources)
    return [resource.name for resource in managed if resource.ignored_by_scheduler]


def _check_extenders(config: KubeSchedulerConfiguration, ignored: list[str], findings: Findings) -> None:
    extenders, prefix = FieldPath(("extenders",)), "couldn't build extenders: "
    for i, extender in enumerate(config.extenders):
        tls = extender.tls_config
        if tls is not None and tls.insecure and (tls.ca_file or tls.ca_data):
            message = "specifying a root certificates file with the insecure flag is not allowed"
            hint = "remove insecure, or the certificate authority"
            findings.unbuildable(extenders.index(i).child("tlsConfig", "insecure"), message, hint, prefix)
    for i, profile in enumerate(config.profiles if ignored else ()):
        enabled = {plugin.name for each in profile.plugins.by_key().values() for plugin in each.enabled}
        if FIT not in enabled | {entry.name for entry in profile.plugin_config}:
            message = "can't find NodeResourcesFitArgs in plugin config"
            hint = f"an extender's ignoredByScheduler needs {FIT} in every profile"
            findings.unbuildable(PROFILES.index(i), message, hint, prefix)


def _check_one_queue(config: KubeSchedulerConfiguration, profiles: list[Profile], findings: Findings) -> None:
    """All profiles share one queue; two ways of sorting it may come in through multiPoint, unseen by the rules."""

    def args_of(i: int, sorter: str) -> object:
        return next((each.args for each in config.profiles[i].plugin_config if each.name == sorter), None)

    sorters = [profile.plugins[Point.QUEUE_SORT] for profile in profiles]
    if any(len(names) != 1 for names in sorters):
        return
    first = sorters[0][0]
    for i, (sorter,) in enumerate(sorters[1:], start=1):
        at, name = PROFILES.index(i), quoted(profiles[i].scheduler_name)
        message = ""
        if sorter != first:
            message = f"different queue sort plugins for profile {name}: {quoted(sorter)}, first: {quoted(first)}"
        elif args_of(i, sorter) != args_of(0, first):
            message = f"different queue sort plugin args for profile {name}"
        if message and not findings.found_under(at):
            hint, prefix = "all profiles share one queue", "initializing profiles: "
            findings.unbuildable(at.child("plugins"), message, hint, prefix)


def decode_arguments(
    config: KubeSchedulerConfiguration, registry: Registry, findings: Findings
) -> dict[tuple[int, int], msgspec.Struct]:
    """The decoded arguments by (profile, position in its pluginConfig), without those that have mistakes."""
    decoded: dict[tuple[int, int], msgspec.Struct] = {}
    for i, profile in enumerate(config.profiles):
        for j, entry in enumerate(profile.plugin_config):
            args = _decode_entry(entry, i, j, (API_VERSION, config.api_version), registry, findings)
            if args is not None:
                decoded[i, j] = args
    return decoded


def plain_arguments(entry: PluginConfig) -> dict[str, Any]:
    """An entry's arguments without the header that says what they are."""
    args = entry.args if isinstance(entry.args, dict) else {}
    return {name: value for name, value in args.items() if name not in ("apiVersion", "kind")}


def _decode_entry(
    entry: PluginConfig, i: int, j: int, versions: tuple[str, ...], registry: Registry, findings: Findings
) -> msgspec.Struct | None:
    args_type = registry[entry.name].Args if entry.name in registry else None
    if args_type is None:
        return None
    path = PROFILES.index(i).child("pluginConfig").index(j).child("args")
    entry_words = f"decoding .profiles[{i}].pluginConfig[{j}]: "
    decoding = f"decoding args for plugin {entry.name}: "
    if entry.args is not None and not isinstance(entry.args, dict):
        findings.unreadable(
            path, f"{entry_words}{decoding}expected a mapping, got {quoted(without_secrets(entry.args))}"
        )
        return None
    known = {f"{name}Args" for name, plugin in registry.items() if plugin.Args is not None}
    objection = _header_objection(entry, versions, known, decoding)
    if objection is not None:
        wrong, message = objection
        hint = f"write apiVersion: {API_VERSION} and kind: {entry.name}Args, or leave both out"
        findings.unreadable(path.child(wrong), entry_words + message, hint)
        return None
    args, mistakes = decode(plain_arguments(entry), args_type)
    for mistake in mistakes:
        at = FieldPath((*path.steps, *mistake.path.steps))
        if mistake.unknown_field:
            findings.strict(at, mistake.message, mistake.hint, prefix=f"{STRICT}{entry_words}{STRICT}{decoding}")
        else:
            findings.unreadable(at, f"{entry_words}{decoding}{mistake.message}", mistake.hint)
    return None if mistakes else args  # what is left after a mistake is not blamed for the gap


def _header_objection(
    entry: PluginConfig, versions: tuple[str, ...], known: set[str], decoding: str
) -> tuple[str, str] | None:
    """Which of `apiVersion` and `kind` is wrong, and kube-scheduler's sentence; None when they fit or are left out."""
    header, expected = entry.args or {}, f"{entry.name}Args"
    version, kind = header.get("apiVersion") or API_VERSION, header.get("kind") or expected
    if version not in versions or kind not in known:
        message = f"{decoding}no kind {quoted(kind)} is registered for version {quoted(version)}"
        return ("kind" if version in versions else "apiVersion"), message
    if kind != expected:
        return "kind", f"args for plugin {entry.name} were not of type {expected}.{GROUP}, got {kind}.{GROUP}"
    return None
