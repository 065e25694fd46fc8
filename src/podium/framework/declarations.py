"""Refuses plugins that declare something that no plugin may: Args as a dict, a normalizer by its name, `async def`, a
method with other arguments than it is called with.

Such a plugin would fail later, in Podium's own code, where nothing names it.

Also refuses plugins whose methods or attributes look like the contract's but are none: `scor_node`, `preFilter`.

Such a plugin would load, and do nothing. A helper that is meant as it is may be named with a leading underscore.

Also checks the kinds that a plugin names: what it reads (`resources`, `depends_on`), what it waits for (`interests`).

Kinds that scheduling itself depends on are typed, and every scheduler knows them. Any other is read as it was written:
custom resources and other groups' objects by "plural.group", and of the core group the few in `CORE_KINDS`. A name that
is none of these would not be watched, so it is refused.

Also says what a plugin has to write instead of the attributes that `depends_on` and `answer_key` have replaced.

Also finds which events may help a pod that a plugin rejected, from what the plugin says that its answers depend on.

That is enough for a plugin that rejects at PreFilter or Filter only and has no `answer_key`: it has declared all that
its answers depend on. What other plugins wait for is not known, and any event wakes their pods.

    a declared part    events
    the pod            a change of the waiting pod itself
    OBJECT             a node comes or changes
    TOTALS, PODS       also: a pod on a node comes, changes or goes
    kinds              an object of these kinds comes, changes or goes; None: of any kind that wakes pods
    resources          the same
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from inspect import getattr_static, iscoroutinefunction, isfunction, signature
from typing import Any, Final

import msgspec

from podium.config.points import Point
from podium.framework import protocols
from podium.framework.answers import given
from podium.framework.depends_on import DependsOn, NodePart
from podium.framework.events import RESOURCE_OF, USUAL, Action, Interest, Resource
from podium.framework.extension_points import MAY_WAIT, METHODS
from podium.framework.normalize import Normalizer
from podium.framework.plugin import Plugin
from podium.framework.protocols import KeyedPlugin
from podium.framework.status import PluginError
from podium.kube import Node, Pod
from podium.kube.custom_object import CORE_KINDS
from podium.kube.decode import KINDS

_ANSWERS_AT_ONCE: Final = (
    *(method for method in METHODS if method not in MAY_WAIT),
    *("interests", "answer_key", "observe"),
)
_SCOPES: Final = ("filter_scope", "score_scope")
_PARTS: Final = {"NODE": NodePart.OBJECT, "CLUSTER": NodePart.ANYTHING, **NodePart.__members__}
_GONE: Final = (*_SCOPES, "sees_claims", "looks_at", "watermark", "sign_pod", "signs_pods")
_REJECTS_AT: Final = {Point.PRE_FILTER, Point.FILTER}
_NEVER_REJECTS_AT: Final = {Point.QUEUE_SORT, Point.PRE_SCORE, Point.SCORE, Point.POST_BIND}
_OTHER_KINDS: Final = tuple(resource for resource in USUAL if resource not in (Resource.POD, Resource.NODE))

_ARGUMENTS: Final = {
    name: list(signature(method).parameters)
    for contract in vars(protocols).values()
    for name, method in (vars(contract).items() if isinstance(contract, type) else ())
    if name in METHODS
}
"""By method: what it is called with, `self` first."""


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
    for method, arguments_given in _ARGUMENTS.items():
        written = getattr_static(plugin, method, None)
        try:
            if isfunction(written):
                signature(written).bind(*arguments_given)
        except TypeError:
            wanted = ", ".join(arguments_given)
            yield f"{method}({', '.join(signature(written).parameters)}) cannot be called: write {method}({wanted})"


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
    yield from old_declaration(plugin)
    if isinstance(plugin.depends_on, DependsOn):
        yield from _wrong_fields(plugin.depends_on)
    else:
        yield f"depends_on is {given(plugin.depends_on)}: write DependsOn(node=…, claims=…, kinds=…)"
    if isinstance(plugin.resources, str):
        yield f'resources is {given(plugin.resources)}: write a tuple, such as ("plural.group/v1",)'
    if not isinstance(plugin.reason, str):
        yield f"reason is {given(plugin.reason)}: write a text"


def _wrong_fields(declared: DependsOn) -> Iterator[str]:
    node: object = declared.node
    if not isinstance(node, NodePart):
        yield f"depends_on.node is {given(node)}: write {', '.join(f'NodePart.{each.name}' for each in NodePart)}"
    if not isinstance(declared.claims, bool):
        yield f"depends_on.claims is {given(declared.claims)}: write True or False"
    kinds: object = declared.kinds
    if kinds is not None and not isinstance(kinds, tuple):
        yield f"depends_on.kinds is {given(kinds)}: write a tuple, such as (PriorityClass,), or None"
        return
    for kind in kinds or ():
        if kind in (Node, Pod):
            yield f"depends_on.kinds: {kind.__name__} is not named there; `node` says what it reads of nodes and pods"
        elif kind not in KINDS.values():
            known = ", ".join(sorted({known.__name__ for known in KINDS.values()} - {"CustomObject", "Node", "Pod"}))
            yield f"depends_on.kinds: {kind!r} is no kind of podium.kube; there are {known}"


_METHODS_ASIDE: Final = {"args", "handle", "answer_key"}
_KNOWN = {*METHODS} | {name for name in dir(Plugin) if not name.startswith("_")} | _METHODS_ASIDE
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


def wrong_interest(resource: str) -> str | None:
    """Why nothing is ever heard of a resource; None where it can be waited for."""
    if resource in _TYPED or is_plain(resource):
        return None
    known = ", ".join(sorted(f'"{each}"' for each in _TYPED))
    return (
        f'"{resource}" is no kind that can be waited for; write one of {known} (Resource has them) or a "plural.group"'
    )


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


def derived_interests(plugin: Plugin) -> list[Interest] | None:
    """The events that may undo a rejection by a plugin that names none; None: any event may."""
    declared = plugin.depends_on
    if declared.node == NodePart.ANYTHING or isinstance(plugin, KeyedPlugin):
        return None
    if not plugin.points & _REJECTS_AT or plugin.points - _REJECTS_AT - _NEVER_REJECTS_AT:
        return None
    interests = [
        Interest(Resource.UNSCHEDULED_POD, Action.UPDATE, _is_the_pod, by_signature=True),
        Interest(Resource.NODE, Action.ALL & ~Action.DELETE),
    ]
    if declared.node > NodePart.OBJECT:
        interests.append(Interest(Resource.ASSIGNED_POD, Action.ALL))
    kinds = (
        _OTHER_KINDS
        if declared.kinds is None
        else [RESOURCE_OF[kind] for kind in declared.kinds if kind in RESOURCE_OF]
    )
    resources = [resource.partition("/")[0] for resource in plugin.resources]
    return [*interests, *(Interest(each, Action.ALL) for each in dict.fromkeys((*kinds, *resources)))]


def _is_the_pod(pod: Pod, _before: Any, after: Pod | None) -> bool:
    return after is not None and after.uid == pod.uid
