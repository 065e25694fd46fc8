"""Lays what a profile asks for over the default plugin set.

Done per key (`score`, `multiPoint`, …), before any extension point is filled:

1. The defaults keep their order, without those the profile disables; `*` disables them all.
2. A default that the profile also enables takes the profile's entry, and so its weight, in its old position.
3. What else the profile enables follows, in the profile's order. Disabling and enabling the same plugin therefore
   moves it to the end.

The disabled names stay in the result: filling the extension points needs them.
"""

from podium.config.types import PluginEntry, Plugins, PluginSet

EVERYTHING = "*"


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """The plugin sets of a profile, defaults included."""
    wanted = custom.by_key()
    return Plugins.from_keys({key: merge_plugin_set(ours, wanted[key]) for key, ours in default.by_key().items()})


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """One key's set. A name enabled twice by the profile stays in twice; building the profile refuses it."""
    disabled = tuple(PluginEntry(name=plugin.name) for plugin in (*custom.disabled, *default.disabled))
    dropped = {plugin.name for plugin in disabled}
    entry_of = {plugin.name: index for index, plugin in enumerate(custom.enabled)}

    enabled: list[PluginEntry] = []
    placed: set[int] = set()
    for plugin in () if EVERYTHING in dropped else default.enabled:
        if plugin.name in dropped:
            continue
        replacement = entry_of.get(plugin.name)
        if replacement is None:
            enabled.append(plugin)
        else:
            enabled.append(custom.enabled[replacement])
            placed.add(replacement)
    enabled.extend(plugin for index, plugin in enumerate(custom.enabled) if index not in placed)
    return PluginSet(enabled=tuple(enabled), disabled=disabled)
