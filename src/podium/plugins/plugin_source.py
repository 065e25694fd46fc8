"""Loads plugins named on the command line: `module:Class`, `file.py` or `file.py:Class`; and again when they changed.

A source that is loaded again is executed in a module of its own, from its text: a cached compilation may be as old as a
second. What went before stays as it is until all of the new source has run.
"""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from podium.errors import UserError
from podium.framework.plugin import Plugin

SUFFIX = ".py"


class PluginLoadError(UserError):
    """A plugin was asked for that cannot be loaded."""


def load_source(option: str, *, again: bool = False) -> list[object]:
    """The plugins that an option names; with `again`, from the source as it is now."""
    name, attribute = split_option(option)
    if name.endswith(SUFFIX):
        module = _execute(f"podium_plugin_{Path(name).stem}", Path(name), option)
        return [_attribute(module, attribute, option)] if attribute else _plugins_in(module, option)
    if not name or not attribute:
        raise PluginLoadError(f'--plugin {option}: write it as "module:Class" or "file.py"')
    if again:
        return [_attribute(_execute(name, file_of(option), option), attribute, option)]
    try:
        module = importlib.import_module(name)
    except Exception as error:  # whatever the module does while it is loaded
        raise PluginLoadError(f"--plugin {option}: cannot be loaded: {described(error)}") from error
    return [_attribute(module, attribute, option)]


def split_option(option: str) -> tuple[str, str]:
    """The module or file, and the class where one is named.

    >>> split_option("quiet.py"), split_option("shop.quiet:Quiet")
    (('quiet.py', ''), ('shop.quiet', 'Quiet'))
    """
    name, _, attribute = option.rpartition(":") if ":" in option else (option, "", "")
    return (option, "") if attribute.endswith(SUFFIX) else (name, attribute)


def file_of(option: str) -> Path:
    """The file that a plugin is written in."""
    name, _attribute_name = split_option(option)
    if name.endswith(SUFFIX):
        return Path(name)
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or not spec.origin.endswith(SUFFIX):
        raise PluginLoadError(f"--plugin {option}: it has no source file that could be loaded again")
    return Path(spec.origin)


def source_of(plugin: type[Plugin]) -> Path | None:
    """The file that a plugin which is loaded was read from."""
    file = getattr(sys.modules.get(plugin.__module__), "__file__", None)
    return Path(file).resolve() if file else None


def described(error: Exception) -> str:
    return str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"


def _execute(name: str, path: Path, option: str) -> ModuleType:
    before = sys.modules.get(name)
    module = ModuleType(name)
    module.__file__, module.__package__ = str(path), name.rpartition(".")[0]
    module.__spec__ = importlib.util.spec_from_file_location(name, path)  # where its file is looked up the next time
    linecache.checkcache(str(path))
    try:
        source = path.read_bytes()
    except OSError as error:
        raise PluginLoadError(f"--plugin {option}: {path} cannot be read: {error.strerror}") from None
    sys.modules[name] = module  # types are looked up there while classes are made
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102  as importing it would
    except Exception as error:  # whatever the module does while it is loaded
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise PluginLoadError(f"--plugin {option}: {_location(error, path)}: {described(error)}") from error
    return module


def _location(error: Exception, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"line {lines[-1]}" if lines else "it cannot be loaded"


def _attribute(module: ModuleType, attribute: str, option: str) -> object:
    if not hasattr(module, attribute):
        raise PluginLoadError(f'--plugin {option}: module "{split_option(option)[0]}" has no "{attribute}"')
    found: object = getattr(module, attribute)
    return found


def _plugins_in(module: ModuleType, option: str) -> list[object]:
    values: Iterable[object] = list(vars(module).values())
    found: list[object] = [
        each
        for each in values
        if isinstance(each, type)
        and issubclass(each, Plugin)
        and each.__module__ == module.__name__
        and not each.__name__.startswith("_")
    ]
    bases = {base for each in found if isinstance(each, type) for base in each.__mro__[1:]}
    found = [each for each in found if each not in bases or getattr(each, "points", None)]
    if not found:
        raise PluginLoadError(f"--plugin {option}: it has no plugin; derive a class from podium.Plugin")
    return found
