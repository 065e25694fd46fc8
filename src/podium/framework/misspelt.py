"""Refuses plugins whose methods or attributes look like the contract's but are none: `scor_node`, `preFilter`.

Such a plugin would load, and do nothing. A helper that is meant as it is may be named with a leading underscore.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from podium.framework.plugin import POINT_METHODS, Plugin

_METHODS = frozenset(
    {
        *(method for methods in POINT_METHODS.values() for method in methods),
        *("add_pod", "remove_pod", "normalize", "pre_bind_preflight", "sort_key", "interests", "watermark", "observe"),
    }
)
_KNOWN = _METHODS | {name for name in vars(Plugin) if not name.startswith("_")} | {"args", "handle"}
_IMITATED = _KNOWN - {"points", "args", "handle", "metrics", "page"}
"""Of these, names that are no ordinary words: a plugin may well have a `metric`."""
_CLOSE = 0.84
"""How much of a name must agree: `scor_node` is score_node, `score_table` is not."""


def misspelt(plugin: type[Plugin]) -> Iterator[str]:
    """A sentence for each public name of the class that is nearly one of the contract's.

    >>> class Quiet(Plugin):
    ...     def scor_node(self, cycle, node):
    ...         return 0
    >>> list(misspelt(Quiet))
    ['"scor_node" is no method of a plugin: did you mean score_node? (_scor_node, if it is a helper)']
    """
    plain = {_plain(name): name for name in sorted(_IMITATED)}
    names = {name: None for kind in reversed(plugin.__mro__) if kind not in Plugin.__mro__ for name in vars(kind)}
    for name in names:
        if name.startswith("_") or name in _KNOWN:
            continue
        close = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=_CLOSE)
        if close:
            kind = "method" if callable(getattr(plugin, name)) else "attribute"
            yield f'"{name}" is no {kind} of a plugin: did you mean {plain[close[0]]}? (_{name}, if it is a helper)'


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
