"""Reads a KubeSchedulerConfiguration: from a file's text to a configuration that can run, or everything wrong with it.

    text → values with their positions → typed, strictly → defaults → rules → extension points filled

`v1` is the only version that kube-scheduler knows. Files of its predecessor `v1beta3` are still about; the fields are
the same, so they are read as v1, with a warning.

Warnings: things a file may say, that kube-scheduler accepts without a word, and that are probably not meant.

The one refusal among them is a negative weight. Depending on where the plugin stands, kube-scheduler either complains
of an overflow or lets it through and then prefers the nodes the plugin likes least; that is never meant.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import convert
from msgspec.structs import replace

from podium.config.build import PROFILES, build, decode_arguments, plain_arguments
from podium.config.defaults import DEFAULT_PLUGINS, EVERYTHING, beside_defaults, with_defaults
from podium.config.expand import MULTI_POINT
from podium.config.field import FieldError, FieldPath, Wrong, quoted
from podium.config.points import Point
from podium.config.positions import ConfigDocument, MalformedConfigError, Position, Repeated, parse
from podium.config.problems import REPEATED, ConfigError, ConfigProblem, Findings, did_you_mean
from podium.config.registry import DiffersByVersion, PluginType, Registry
from podium.config.resolved import SchedulerConfig
from podium.config.strict import Mistake, decode
from podium.config.types import API_VERSION, GROUP, KIND, KubeSchedulerConfiguration, PluginEntry, SchedulerProfile
from podium.config.validate import REMOVED_HINT, validate
from podium.kube.versions import NEWEST, VersionRules

OLDER_VERSION = f"{GROUP}/v1beta3"
_ROOT = FieldPath()
ABSURD_WEIGHT = 10**6
_WEIGHTED = (MULTI_POINT, Point.SCORE, Point.PLACEMENT_SCORE)
_DEFAULTS = {plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled}


class LoadedConfig(NamedTuple):
    """A usable configuration, and what its author may want to look at again."""

    config: SchedulerConfig
    warnings: list[ConfigProblem]


def load_config(text: str, source: str, registry: Registry, rules: VersionRules = NEWEST) -> LoadedConfig:
    """Loads a file's text; `source` is the file name for messages. Raises ConfigError with every problem found."""
    try:
        document = parse(text)
    except MalformedConfigError as error:
        raise ConfigError([ConfigProblem(source, error.line, "", str(error))], kube_text=str(error)) from None
    findings = Findings(source, document)
    fields = _fields_of_a_configuration(document, registry, findings)
    written = _decode(fields, document, findings, rules)
    return _finish(written, registry, findings, rules)


def default_config(
    registry: Registry, rules: VersionRules = NEWEST, beside: Sequence[PluginType] = ()
) -> SchedulerConfig:
    """What kube-scheduler runs without a file; with plugins beside its own, where some are given."""
    written = convert(beside_defaults(beside), KubeSchedulerConfiguration) if beside else KubeSchedulerConfiguration()
    return _finish(written, registry, Findings("the default configuration"), rules).config


def _finish(
    written: KubeSchedulerConfiguration, registry: Registry, findings: Findings, rules: VersionRules
) -> LoadedConfig:
    args = {
        place: each.with_defaults_of(rules) if isinstance(each, DiffersByVersion) else each
        for place, each in decode_arguments(written, registry, findings).items()
    }
    advise(written, registry, findings)
    defaulted = with_defaults(written, rules)
    for error in validate(defaulted, args, rules):
        findings.invalid(error, _advice(error, defaulted), _own_words(error, defaulted))
    config = build(defaulted, written, args, registry, findings, rules)
    findings.raise_if_any()
    return LoadedConfig(replace(config, rules=rules), findings.warnings)


def _fields_of_a_configuration(document: ConfigDocument, registry: Registry, findings: Findings) -> dict[str, Any]:
    """The top-level fields, once it is clear that they are those of a KubeSchedulerConfiguration we can read."""
    fields = document.value if document.value is not None else {}
    if not isinstance(fields, dict):
        findings.unreadable(_ROOT, "expected a mapping of fields at the top of the file")
        findings.raise_if_any()
    version, kind = fields.get("apiVersion") or "", fields.get("kind") or ""
    if not kind:
        findings.unreadable(_ROOT.child("kind"), "Object 'Kind' is missing", f"write kind: {KIND}")
    if not version:
        message, hint = "Object 'apiVersion' is missing", f"write apiVersion: {API_VERSION}"
        findings.unreadable(_ROOT.child("apiVersion"), message, hint)
    elif version == OLDER_VERSION:
        findings.warn(_ROOT.child("apiVersion"), "v1beta3 was read as v1", f"write apiVersion: {API_VERSION}")
    elif version != API_VERSION:
        message = f"no kind {quoted(kind or KIND)} is registered for version {quoted(version)}"
        findings.unreadable(_ROOT.child("apiVersion"), message, f"write apiVersion: {API_VERSION}")
    if kind and kind != KIND:
        if any(f"{name}Args" == kind and plugin.Args is not None for name, plugin in registry.items()):
            message = f"couldn't decode as {KIND}, got {API_VERSION}, Kind={kind}"
        else:
            message = f"no kind {quoted(kind)} is registered for version {quoted(version)}"
        findings.unreadable(_ROOT.child("kind"), message, f"write kind: {KIND}")
    findings.raise_if_any()
    if document.second_document is not None:
        findings.warn(_ROOT, f"only the first document is read; another begins on line {document.second_document}")
    return fields


def _points_of_later_minors(
    config: KubeSchedulerConfiguration, fields: dict[str, Any], rules: VersionRules
) -> list[Mistake]:
    """Extension points that kube-scheduler got later and that the file names; to an older one they are unknown."""
    point = Point.POD_GROUP_POST_FILTER
    paths = [
        FieldPath().child("profiles").index(number).child("plugins", point)
        for number, _ in enumerate(config.profiles)
        if point in (fields["profiles"][number].get("plugins") or {})
    ]
    hint = f"kube-scheduler {rules} has no such extension point; leave it out, or give a later --kubernetes-version"
    return [Mistake(each, f'unknown field "{each}"', hint, unknown_field=True) for each in paths]


def _decode(
    fields: dict[str, Any], document: ConfigDocument, findings: Findings, rules: VersionRules
) -> KubeSchedulerConfiguration:
    config, mistakes = decode(fields, KubeSchedulerConfiguration)
    if config is not None and not rules.pod_group_post_filter_point:
        mistakes += _points_of_later_minors(config, fields, rules)
    strict = [_repeated(each, document) for each in document.repeated]
    strict += [(document.position(each.path), each) for each in mistakes if each.unknown_field]
    if document.json:  # in YAML kube-scheduler notices repeated fields first, in JSON as it reads along
        strict.sort(key=lambda found: found[0])
    for position, mistake in strict:
        document.positions[mistake.path.steps] = position
        findings.strict(mistake.path, mistake.message, mistake.hint)
    for mistake in mistakes:
        if not mistake.unknown_field:
            findings.unreadable(mistake.path, mistake.message, mistake.hint)
    if config is None:
        findings.raise_if_any()
    return config or KubeSchedulerConfiguration()


def _repeated(repeated: Repeated, document: ConfigDocument) -> tuple[Position, Mistake]:
    path, key, position, value_line, first_line = repeated
    in_yaml = f"{REPEATED}line {value_line}: key {quoted(key)} already set in map"
    message = f"duplicate field {quoted(str(path))}" if document.json else in_yaml
    return position, Mistake(path, message, f"it is already on line {first_line}; keep one")


def _own_words(error: FieldError, config: KubeSchedulerConfiguration) -> str:
    """The message, with the value that is there twice: kube-scheduler prints an empty object."""
    match error.path.steps:
        case ("profiles", int(i), "schedulerName") if error.body.startswith(Wrong.DUPLICATE.value):
            return FieldError.duplicate(error.path, config.profiles[i].scheduler_name or "").body
    return error.body


def _advice(error: FieldError, config: KubeSchedulerConfiguration) -> str:
    """What to write instead, where kube-scheduler's own words leave the reader guessing."""
    match error.path.steps:
        case ("profiles", int(i), "schedulerName"):
            names = [profile.scheduler_name for profile in config.profiles]
            twin = names.index(names[i])
            return (
                f"profiles[{twin}] is called {names[i]}, too" if twin < i and names[i] else "each profile needs a name"
            )
        case (*_, "leaseDuration"):
            return f"leaseDuration is {config.leader_election.lease_duration}"
    return REMOVED_HINT if "was invalid in version" in error.body else ""


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
