"""Says what a plugin has to write instead of the attributes that `depends_on` and `answer_key` have replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from podium.framework.depends_on import NodePart

_SCOPES: Final = ("filter_scope", "score_scope")
_PARTS: Final = {"NODE": NodePart.OBJECT, "CLUSTER": NodePart.ANYTHING, **NodePart.__members__}
_GONE: Final = (*_SCOPES, "sees_claims", "looks_at", "watermark", "sign_pod", "signs_pods")


def old_declaration(plugin: Any) -> Iterator[str]:
    """One sentence where a plugin, or its class, still has attributes that are no longer read.

    >>> class Old:
    ...     filter_scope = "NODE"
    ...     sees_claims = False
    ...     def watermark(self, pod): ...
    >>> print(*old_declaration(Old))
    filter_scope, sees_claims, watermark: no longer read; write \
depends_on = DependsOn(node=NodePart.OBJECT, claims=False) and def answer_key(self, pod)
    """
    found = [name for name in _GONE if hasattr(plugin, name)]
    if not found:
        return
    instead = []
    if fields := list(_fields(plugin, found)):
        instead.append(f"write depends_on = DependsOn({', '.join(fields)})")
    if "watermark" in found:
        instead.append(f"{'' if instead else 'write '}def answer_key(self, pod)")
    if {"sign_pod", "signs_pods"} & set(found):
        instead.append("delete what signs pods, for which Podium has a table of kube-scheduler's plugins")
    yield f"{', '.join(found)}: no longer read; {' and '.join(instead)}"


def _fields(plugin: Any, found: list[str]) -> Iterator[str]:
    parts = [_part(getattr(plugin, name)) for name in _SCOPES if name in found]
    if parts:
        known = [each for each in parts if each is not None]
        yield f"node=NodePart.{max(known).name if len(known) == len(parts) else '…'}"
    if "sees_claims" in found:
        yield f"claims={plugin.sees_claims is not False}"
    if "looks_at" in found:
        kinds = [getattr(kind, "__name__", str(kind)) for kind in plugin.looks_at or ()]
        yield "kinds=None" if plugin.looks_at is None else f"kinds=({''.join(f'{kind}, ' for kind in kinds).rstrip()})"


def _part(scope: object) -> NodePart | None:
    """The part that a scope of old stood for, by its name or its number; None where that cannot be said."""
    name = getattr(scope, "name", scope)
    if isinstance(name, str):
        return _PARTS.get(name.upper())
    return NodePart(scope) if isinstance(scope, int) and scope in list(NodePart) else None
