"""Decodes `pluginConfig`: each entry's arguments into the struct of its plugin.

As in kube-scheduler, arguments are decoded and checked even when the plugin is not enabled, `apiVersion` and `kind`
inside them may be left out but must be right when given, and arguments of an unknown plugin are let pass.
"""

from typing import Any

import msgspec

from podium.config.field import FieldPath, quoted
from podium.config.problems import STRICT, Findings
from podium.config.registry import Registry
from podium.config.secrets import without_secrets
from podium.config.strict import decode
from podium.config.types import API_VERSION, GROUP, KubeSchedulerConfiguration, PluginConfig

PROFILES = FieldPath(("profiles",))


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
