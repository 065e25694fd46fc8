"""Refuses plugins that declare something that no plugin may: Args as a dict, a normalizer by its name, `async def`.

Such a plugin would fail later, in Podium's own code, where nothing names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import iscoroutinefunction
from typing import Any, Final

import msgspec

from podium.framework.answers import given
from podium.framework.normalize import Normalizer
from podium.framework.plugin import POINT_METHODS, Plugin, Scope
from podium.framework.status import PluginError

_MAY_WAIT: Final = frozenset({"bind", "pre_bind", "pre_bind_preflight"})
_ANSWERS_AT_ONCE: Final = (
    *(method for methods in POINT_METHODS.values() for method in methods if method not in _MAY_WAIT),
    *("add_pod", "remove_pod", "normalize", "sort_key", "interests", "watermark", "sign_pod", "observe"),
)


def wrong_declarations(plugin: type[Plugin]) -> Iterator[str]:
    """A sentence for each declaration of a class that cannot be meant.

    >>> class Packed(Plugin):
    ...     normalizer = "reversed"
    ...     async def score_node(self, cycle, node):
    ...         return 0
    >>> for sentence in wrong_declarations(Packed):
    ...     print(sentence)
    normalizer is 'reversed' (str): write Normalizer.DEFAULT or Normalizer.REVERSED, or None
    score_node is async def: write def; only bind and pre_bind may wait
    """
    arguments: object = plugin.Args
    if arguments is not None and not (isinstance(arguments, type) and issubclass(arguments, msgspec.Struct)):
        what = f"the class {arguments.__name__}" if isinstance(arguments, type) else given(arguments)
        yield f"Args is {what}: write a class of fields with defaults, class Args(msgspec.Struct)"
    yield from _wrong_attributes(plugin)
    for method in _ANSWERS_AT_ONCE:
        if iscoroutinefunction(getattr(plugin, method, None)):
            yield f"{method} is async def: write def; only bind and pre_bind may wait"


def does_nothing(plugin: type[Plugin]) -> Iterator[str]:
    """A sentence for a class that takes part nowhere."""
    if not plugin.points:
        yield "it has no method of an extension point and does nothing: write one, such as filter_node or score_node"


def with_checked_attributes(plugin: Plugin) -> Plugin:
    """The plugin; raises PluginError where its `__init__` has set what cannot be meant."""
    if mistakes := list(_wrong_attributes(plugin)):
        raise PluginError("; ".join(mistakes))
    return plugin


def _wrong_attributes(plugin: Any) -> Iterator[str]:
    if plugin.normalizer is not None and not isinstance(plugin.normalizer, Normalizer):
        yield f"normalizer is {given(plugin.normalizer)}: write Normalizer.DEFAULT or Normalizer.REVERSED, or None"
    for name in ("filter_scope", "score_scope"):
        scope: object = getattr(plugin, name)
        if not isinstance(scope, Scope | property):
            yield f"{name} is {given(scope)}: write {', '.join(f'Scope.{each.name}' for each in Scope)}"
    if isinstance(plugin.resources, str):
        yield f'resources is {given(plugin.resources)}: write a tuple, such as ("plural.group/v1",)'
    if not isinstance(plugin.reason, str):
        yield f"reason is {given(plugin.reason)}: write a text"
