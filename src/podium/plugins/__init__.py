"""The plugins: kube-scheduler's own set, and how all others are found.

Ours are those that our packages list (`podium.packages`); others come from the entry-point group `podium.plugins` of
any installed package, or by `module:Class` or `file.py` on the command line. All are looked up by name and enabled in a
profile the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from importlib.metadata import entry_points

from podium import packages
from podium.framework.declarations import does_nothing, misspelt, wrong_declarations, wrong_kinds
from podium.framework.plugin import Plugin
from podium.plugins.plugin_source import PluginLoadError, described, load_source, source_of

__all__ = ["PluginLoadError", "PluginRegistry", "installed_plugins", "load_named", "load_registry", "register"]


class PluginRegistry(MutableMapping[str, type[Plugin]]):
    """Every plugin by name; ours are loaded when they are asked for, so that a process loads those that it runs."""

    def __init__(self, loaded: Mapping[str, type[Plugin]] | None = None) -> None:
        self._loaded = dict(loaded or {})
        self._names = dict.fromkeys([*packages.plugins(), *self._loaded])

    def __getitem__(self, name: str) -> type[Plugin]:
        found = self._loaded.get(name)
        if found is None:
            found = self._loaded[name] = packages.load(packages.plugins()[name].target)
        return found

    def __setitem__(self, name: str, plugin: type[Plugin]) -> None:
        self._names[name] = None
        self._loaded[name] = plugin

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load_registry(extra: Iterable[str] = ()) -> PluginRegistry:
    """Every plugin by name: in-tree, installed, and those given as `module:Class` or `file.py`."""
    registry = PluginRegistry()
    for point in entry_points(group=packages.PLUGINS):
        try:
            found = point.load()
        except Exception as error:  # whatever the module does while it is loaded
            raise PluginLoadError(
                f'installed plugin "{point.name}" ({point.value}) cannot be loaded: {described(error)}'
            ) from error
        register(registry, found, f"installed plugin {point.value}")
    load_named(registry, extra)
    return registry


def installed_plugins() -> dict[type[Plugin], str]:
    """The plugins of entry points, each with the package that brings it."""
    return {point.load(): point.dist.name for point in entry_points(group=packages.PLUGINS) if point.dist is not None}


def load_named(
    registry: MutableMapping[str, type[Plugin]], options: Iterable[str], *, again: bool = False
) -> list[type[Plugin]]:
    """Add the plugins given as `module:Class` or `file.py`; with `again`, from their source as it is now."""
    made: list[type[Plugin]] = []
    for option in options:
        found = load_source(option, again=again)
        for each in found:
            which = f': plugin "{getattr(each, "__name__", each)}"' if len(found) > 1 else ""
            made.append(register(registry, each, f"--plugin {option}{which}"))
    return made


def register(registry: MutableMapping[str, type[Plugin]], found: object, source: str) -> type[Plugin]:
    """Add a plugin; `source` is what it came from, for messages."""
    if not (isinstance(found, type) and issubclass(found, Plugin)):
        raise PluginLoadError(f"{source} is not a Plugin class; derive it from podium.Plugin")
    mistakes = [*misspelt(found), *wrong_declarations(found)] or [*wrong_kinds(found)]
    mistakes = mistakes or [*does_nothing(found)]
    if mistakes:
        raise PluginLoadError(f"{source}: {'; '.join(mistakes)}")
    known = registry.get(found.name)
    if known is not None and known is not found and not _same_source(known, found):
        raise PluginLoadError(f'{source}: a plugin named "{found.name}" exists already; {_way_out(known)}')
    registry[found.name] = found
    return found


def _same_source(known: type[Plugin], found: type[Plugin]) -> bool:
    """Whether both are one class of one file, as where the file of an installed plugin is given with `--plugin`."""
    return known.__qualname__ == found.__qualname__ and source_of(known) == source_of(found) is not None


def _way_out(known: type[Plugin]) -> str:
    where = None if known.name in packages.plugins() else source_of(known)
    return "set another name" if where is None else f"it is that of {where}: set another name, or uninstall that one"
