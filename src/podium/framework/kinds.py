"""Checks the kinds that a plugin names: what it reads (`resources`, `looks_at`), what it waits for (`interests`).

Kinds that scheduling itself depends on are typed, and every scheduler knows them. Any other is read as it was written:
custom resources and other groups' objects by "plural.group", and of the core group the few in `CORE_KINDS`. A name that
is none of these would not be watched, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from podium.framework.events import Resource
from podium.kube.custom_object import CORE_KINDS
from podium.kube.decode import KINDS

if TYPE_CHECKING:
    from podium.framework.plugin import Plugin

_TYPED: Final = frozenset(value for name, value in vars(Resource).items() if name.isupper())
_CORE: Final = tuple(CORE_KINDS.values())
_PLURAL_GROUP: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_VERSION: Final = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")


def is_plain(resource: str) -> bool:
    """Whether objects of this resource reach plugins as they were written.

    >>> [is_plain(each) for each in ("widgets.example.com", "configmaps", "Node", "storage.k8s.io/CSINode")]
    [True, True, False, False]
    """
    return resource in _CORE or _PLURAL_GROUP.fullmatch(resource) is not None


def wrong_kinds(plugin: type[Plugin]) -> Iterator[str]:
    """A sentence for each kind that the class reads and that there is not."""
    for each in plugin.resources:
        name, slash, version = each.partition("/")
        if not is_plain(name) or (slash and not _VERSION.fullmatch(version)):
            core = ", ".join(f'"{core}/v1"' for core in _CORE)
            yield f'resources: "{each}" is no kind that can be read; write {core} or a "plural.group/version"'
    for kind in plugin.looks_at or ():
        if kind not in KINDS.values():
            known = ", ".join(sorted({known.__name__ for known in KINDS.values()} - {"CustomObject"}))
            yield f"looks_at: {kind!r} is no kind of podium.kube; there are {known}"


def wrong_interest(resource: str) -> str | None:
    """Why nothing is ever heard of a resource; None where it can be waited for."""
    if resource in _TYPED or is_plain(resource):
        return None
    known = ", ".join(sorted(f'"{each}"' for each in _TYPED))
    return (
        f'"{resource}" is no kind that can be waited for; write one of {known} (Resource has them) or a "plural.group"'
    )
